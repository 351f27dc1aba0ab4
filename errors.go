package interlock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/fault"
)

// The errors of this package, for errors.Is. What is held, lost, uncertain and unreachable is never
// mixed up.
var (
	// ErrHeld: somebody else has it. The error is a [*HeldError], which says who where that is
	// known.
	ErrHeld = fault.ErrHeld

	// ErrLost: the lease can no longer be guaranteed. It wraps the reason.
	ErrLost = fault.ErrLost

	// ErrReleased: the lease was released by its owner.
	ErrReleased = fault.ErrReleased

	// ErrDeadlock: the context belongs to a holder of the same name, who would wait for itself.
	ErrDeadlock = errors.New("deadlock: the context already holds this name")

	// ErrUncertain: the release could not be confirmed in time and goes on in the background; at
	// the latest the lock is free when its time is over.
	ErrUncertain = fault.ErrUncertain

	// ErrUnavailable: the store has not answered, also not to Open, or so slowly that its answers
	// were worth nothing, or that it cannot.
	ErrUnavailable = fault.ErrUnavailable

	// ErrClosed: the client is shut down.
	ErrClosed = fault.ErrClosed

	// ErrTooManyWaiters: Options.MaxWaiters goroutines wait for this name already.
	ErrTooManyWaiters = fault.ErrTooManyWaiters

	// ErrMaxHold: the lease was held for as long as its MaxHold allows. It is a reason of ErrLost.
	ErrMaxHold = fault.ErrMaxHold
)

// Error is the error of every operation on a lock.
type Error struct {
	Op   string // lock, try, release, lead …
	Name string // of the lock, or of the first of several
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("interlock: %s %q: %v", e.Op, e.Name, e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Holder is one claim as people see it.
type Holder = driver.Holder

// HeldError says that somebody else has the lock, and who, where the store could say so. It matches
// [ErrHeld].
type HeldError struct {
	Holder *Holder // nil when it is not known
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Holder == nil {
		return ErrHeld.Error()
	}
	var b strings.Builder
	b.WriteString("held")
	if who := e.Holder.Owner.Name; who != "" {
		b.WriteString(" by " + who)
	} else if e.Holder.Foreign {
		b.WriteString(" by another program")
	}
	if !e.Holder.Since.IsZero() {
		b.WriteString(" since " + e.Holder.Since.Format(time.RFC3339))
	}
	if e.Holder.Note != "" {
		fmt.Fprintf(&b, " (%s)", e.Holder.Note)
	}
	return b.String()
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
