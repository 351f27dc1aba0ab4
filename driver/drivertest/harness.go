package drivertest

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// T is the part of *testing.T that the suite and its harnesses need, so that [Judge] can take its
// place.
type T interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// A Harness stands for one store. Each law gets a harness of its own; several may stand for the
// same store as long as their prefixes differ.
type Harness interface {
	// Driver opens the store once more, as another process would: nothing may be shared with
	// drivers opened before except the store. The suite closes it.
	Driver(t T) driver.Driver

	// Prefix begins every name that the suite uses. No claim may stand under it. At most 64 bytes.
	Prefix() string

	// TTL is the liveness to ask for. A second is usual; the suite waits some multiples of it.
	TTL() time.Duration
}

// Killer is a Harness that can end a process.
type Killer interface {
	// Kill ends d and its sessions as SIGKILL ends a process: nothing is released, nothing is sent,
	// and the system closes what was open. The suite does not use d any more, except for closing
	// it.
	Kill(t T, d driver.Driver)
}

// Restarter is a Harness that can restart its store.
type Restarter interface {
	// Restart stops the store, starts it again with what it keeps over a restart, and returns when
	// it answers.
	Restart(t T)
}

// Way says what a stalled wire still carries.
type Way uint8

// The ways to stall a wire.
const (
	BothWays Way = iota + 1 // nothing passes
	Replies                 // requests arrive and are carried out, replies do not come back
)

// String returns the way as the trace tells it.
func (w Way) String() string {
	if w == Replies {
		return "replies are held back"
	}
	return "nothing passes"
}

// Staller is a Harness that can stall the wire between one driver and the store.
type Staller interface {
	// Stall holds the wire of d until heal is called, more than once without harm. The connection
	// stays; what was under way arrives after heal, late.
	Stall(t T, d driver.Driver, way Way) (heal func())
}

// Straggler is a Harness that can have a request overtaken by later ones.
type Straggler interface {
	// Straggle lets n requests of d pass and holds the one after them, with all that follows on its
	// connection, until deliver is called, which reports whether there was one. What d sends over
	// other connections meanwhile passes. The request is carried out after deliver, also where d
	// has closed its connection.
	Straggle(t T, d driver.Driver, n int) (deliver func() bool)
}

// Deafener is a Harness that can lose what the store tells its clients unasked.
type Deafener interface {
	// Deafen loses every notice for d, while its requests and their replies pass, until heal is
	// called, more than once without harm.
	Deafen(t T, d driver.Driver) (heal func())
}

// Ender is a Harness whose store can end a session by itself.
type Ender interface {
	// End ends the session that d opened with s, as an operator or the store does it.
	End(t T, d driver.Driver, s driver.Spec)
}

// Counter is a Harness that counts what a driver asks of the store: requests of a server, or writes
// of records where the store is a file.
type Counter interface {
	// Calls returns how many calls d has made so far.
	Calls(d driver.Driver) int

	// Budget is what the driver's documentation promises.
	Budget() Budget
}

// Budget is what one operation may cost, in calls of the store. What a driver does by the clock, at
// most once a second, is no part of an operation.
type Budget struct {
	Acquire int // a free claim
	Release int // of a claim that nobody waits for

	// Handoff: one claim is released, and one that waits in another process learns that it holds.
	// If it polls, all its looks count.
	Handoff int
}

// Freezer is a Harness that can stop a process anywhere.
type Freezer interface {
	// Freeze runs another process that acquires and releases name as fast as it can, stops it at a
	// random instruction as SIGSTOP does, and returns. Thaw lets it go on, ends it and cleans up;
	// more than once without harm.
	Freeze(t T, name string) (thaw func())
}

// Abstainer is a Harness that lacks means and says so.
type Abstainer interface {
	// Cannot returns why this harness cannot try a law completely, or "". It is asked with the name
	// of the law, such as "Law16_RenewBounded", only when something is missing: a means of the
	// harness, or an optional interface of the driver, which then needs no reason. The reason is
	// logged, and [Run] lists all of them at its end.
	Cannot(law string) string
}

// Slacker is a Harness that knows how late its machine may be.
type Slacker interface {
	// Slack is added to every upper bound on time, with what the suite sees its machine to be late:
	// 2 s unless a harness says otherwise. Lower bounds have no slack.
	Slack() time.Duration
}
