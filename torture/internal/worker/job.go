//go:build linux || darwin

package worker

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// Variable marks a process that is to be a worker: the same binary, executed again. What it
// is to do comes over its standard input, because a store's URL may have a password in it and the
// environment is inherited.
const Variable = "INTERLOCK_TORTURE_WORKER"

// Job is what a worker is to do.
type Job struct {
	Task    string // storm, contest or transactions
	Store   string
	TTL     time.Duration
	Grace   time.Duration
	Seed    uint64 // of this life
	Slot    int
	Number  int
	Log     string // path
	Board   string // path, of a contest
	Names   []string
	Files   []string          // beside each name, the file whose number the lock guards
	Count   int               // goroutines
	First   int               // number of the first, over all processes
	End     monotonic.Instant // when to stop asking, which the conductor says in the log
	Guard   GuardKind
	Cuts    bool          // the link to the store is cut again and again, by the worker itself
	Proxied bool          // the links are proxies of the conductor
	Harmed  bool          // the store may be out of reach when the worker starts
	Lie     bool          // the store's promise is reported as longer than it is
	Spare   time.Duration // what the store takes off its promise; a lie puts it back
	// Stalls: one in so many holders is cut off and holds on until it is told of its loss; 0 = none.
	Stalls   int
	Alone    bool          // every lease has a session of its own
	Hold     time.Duration // how long a lease is held, at least
	Rest     time.Duration // between leases, at most
	AskSince bool          // a holder asks the store since when it holds
	Turns    bool          // tell turns from passes
	Tries    bool          // try again and again, for want of a line
	Tx       string        // the lock is one of a transaction, by what it says

	Permits int // each name is a semaphore of so many; 0 = it is a mutex
}

// GuardKind is what guards the number in the file.
type GuardKind string

// The guards.
const (
	Fenced   GuardKind = "fenced"   // the lock, and the token at the file
	Unfenced GuardKind = "unfenced" // the lock alone
	Unlocked GuardKind = "unlocked" // nothing
	Shared   GuardKind = "shared"   // there is no number: permits guard none
)

// owner is the name of the worker at the store.
func (j Job) owner() string { return fmt.Sprintf("torture p%d.%d", j.Slot, j.Number) }

// The locks that a transaction of a worker's own takes.
const (
	ByRow      = "row"
	ByAdvisory = "advisory"
)
