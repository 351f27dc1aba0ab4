//go:build !linux && !darwin

package guard

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// The reasons why a command was not started. Here it is always [errors.ErrUnsupported].
var (
	ErrLate = errors.New("guard: too little time is left to start the command")
	ErrDied = errors.New("guard: the guard process has died")
)

var started = time.Now()

// Now reads the clock of deadlines.
func Now() int64 { return int64(time.Since(started)) }

// Guard cannot be had on this system.
type Guard struct{}

// Start answers errors.ErrUnsupported.
func Start(Config) (*Guard, error) {
	return nil, fmt.Errorf("guard: this system cannot end a tree of processes reliably: %w", errors.ErrUnsupported)
}

// Run answers errors.ErrUnsupported.
func (*Guard) Run(Command) error { return errors.ErrUnsupported }

// SetDeadline does nothing.
func (*Guard) SetDeadline(Deadline) {}

// Stop does nothing.
func (*Guard) Stop(Deadline) {}

// Signal does nothing.
func (*Guard) Signal(syscall.Signal) {}

// Forward does nothing.
func (*Guard) Forward(syscall.Signal) {}

// Continue does nothing.
func (*Guard) Continue() {}

// Halted reports false.
func (*Guard) Halted() bool { return false }

// Done returns nil.
func (*Guard) Done() <-chan struct{} { return nil }

// Wait returns at once.
func (*Guard) Wait() State { return State{} }

// Close does nothing.
func (*Guard) Close() {}

// Ahead cannot be had on this system.
type Ahead struct{ Signals *Signals }

// StartAhead does nothing.
func StartAhead() {}

// TakeAhead returns nil.
func TakeAhead() *Ahead { return nil }

// Started answers errors.ErrUnsupported.
func (*Ahead) Started() (*Guard, error) { return Start(Config{}) }

// Signals are none on this system.
type Signals struct {
	C   <-chan os.Signal
	All <-chan struct{}
}

// NewSignals returns none.
func NewSignals() *Signals { return &Signals{} }

// CatchStops catches nothing.
func (*Signals) CatchStops() {}

// CatchAll catches nothing.
func (*Signals) CatchAll() {}

// Stop does nothing.
func (*Signals) Stop() {}

// StopSelf does nothing.
func StopSelf(sync.Locker) {}

// Descends reports nothing on this system.
func Descends(int) bool { return false }

// DieOf exits with 128 and the number of the signal.
func DieOf(sig syscall.Signal) { os.Exit(128 + int(sig)) }

// Stops reports false.
func Stops(syscall.Signal) bool { return false }

// Ends reports false.
func Ends(syscall.Signal) bool { return false }
