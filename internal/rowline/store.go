package rowline

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Store is the requests of a driver to its database. Each method is one request, which takes effect
// as a whole or not at all, and may be sent again. Errors are those of package driver; when ctx
// ends before the answer, they wrap a [sessions.Underway]. Times by the database's clock are in
// microseconds, and patience is how long a request waits for the lock of a row.
type Store interface {
	// Open makes the row of a session and returns the time at which its TTL began.
	Open(ctx context.Context, spec driver.Spec) (clock int64, err error)

	// Step makes a step of a line. Twice also counts beside an error.
	Step(ctx context.Context, s Step, patience time.Duration) (Answer, error)

	// Renew renews a session. It returns the time, or 0 if the answer does not have it, and by ID
	// the state of the claims that are not held as they are known to be. If the session is over,
	// the error is driver.ErrSessionLost.
	Renew(ctx context.Context, session string, claims []Known, patience time.Duration) (clock int64, changed map[string]Answer, err error)

	// Finish removes all claims of a session from the lines of these names, which are sorted, and
	// ends the session.
	Finish(ctx context.Context, session string, names []string) error
}

// Step is a step of a line: Old is removed, and New joins or is found there.
type Step struct {
	Session, Name string
	Old           string        // the ID of the claim that is removed, or ""
	New           *driver.Claim // or nil
	Again         bool          // New was in line, and is not put there again
	Held          bool          // or was held, as far as is known
	Renew         bool          // the session is renewed where Again is true; where New joins it always is
	Deadline      int64         // when New may not join any more, by the database's clock
}

// Known is a claim as a session knows it.
type Known struct {
	ID, Name string
	Held     bool
}

// Answer is the result of a step, with the state of its New after it.
type Answer struct {
	State  State
	Was    bool           // Old was held until now
	Twice  bool           // the request was sent again after an attempt of unknown outcome
	Fence  uint64         // of a claim that is held
	Left   time.Duration  // until a claim that waits should ask again by itself; negative for never
	Head   bool           // it is the first that waits
	Gate   string         // behind which it can wait, or ""
	Holder *driver.Holder // what it waits for, if the answer says so
	Clock  int64          // with Void
}

// State is the state of a claim, by the numbers that the functions of every schema return.
type State uint8

// The states of a claim, which only grow, and the answers Misfit, Over and Void.
const (
	Out     State = iota // not in the store, or nothing is known
	Waiting              // in line
	Held
	Broken // by an operator
	Gone   // it was in line, and is not any more
	Misfit // it cannot share the name with the claims that are there
	Over   // the session is over
	Void   // the request came too late
)

// Gates are locks in the database that claims hold while they are in line, and behind which later
// ones wait.
type Gates interface {
	// Await waits until the gate is open, as long as that takes, and returns the state of the claim
	// then, as a Step does. After an error the claim asks.
	Await(ctx context.Context, session string, c driver.Claim, gate string) (Answer, error)
}

// Subscription is closed when it is lost.
type Subscription <-chan struct{}
