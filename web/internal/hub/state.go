package hub

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// State is what a viewer sees: the list or a name, whichever it follows.
type State struct {
	List    *Snapshot    // nil before the first
	Line    *Observation // nil before the first
	Failure *Failure     // nil while the store answers
}

// Snapshot is the list of names as it was read. It does not change.
type Snapshot struct {
	Lines   []driver.Line // in order of name
	At      time.Time     // when the reading began
	Partial error         // why there may be more, or nil
	Made    Memo          // what viewers are shown
}

// Observation is a line as it was seen. It does not change.
type Observation struct {
	driver.Line
	At   time.Time // when the store was asked, or told it
	Made Memo      // what viewers are shown
}

// Failure is why a store could not be asked, and since when.
type Failure struct {
	Since time.Time
	Err   error
}

// errBlind is why a store without an Inspector is not asked.
var errBlind = fmt.Errorf("web: this store cannot be looked into: %w", errors.ErrUnsupported)

// Blind returns the failure of a store that cannot be looked into.
func Blind() *Failure { return &Failure{Err: errBlind} }

// Unsupported reports whether the store cannot do what was asked for. A nil failure is none.
func (f *Failure) Unsupported() bool { return f != nil && errors.Is(f.Err, errors.ErrUnsupported) }

// next returns the failure after another error: since the first one, or since at if f is nil.
func (f *Failure) next(at time.Time, err error) *Failure {
	if f != nil {
		at = f.Since
	}
	return &Failure{Since: at, Err: err}
}

// Mailbox holds the newest state that its viewer has not read yet.
type Mailbox struct{ states chan State }

// NewMailbox returns an empty mailbox.
func NewMailbox() *Mailbox { return &Mailbox{make(chan State, 1)} }

// States returns the channel of states.
func (m *Mailbox) States() <-chan State { return m.states }

// put replaces a state that was not read. One goroutine at a time calls it, so it never waits: with
// the mutex held under which the mailbox is registered.
func (m *Mailbox) put(s State) {
	select {
	case <-m.states:
	default:
	}
	m.states <- s
}
