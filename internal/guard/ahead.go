//go:build linux || darwin

package guard

import "os"

// Ahead is a guard that is being started while the program that wants it is initialized.
type Ahead struct {
	Signals *Signals
	done    chan struct{} // closed when the guard has started, or not
	guard   *Guard
	err     error
}

// ahead is what StartAhead has made and TakeAhead has not taken. Both are called by one goroutine.
var ahead *Ahead

// StartAhead starts the first guard, and catches signals: see [TakeAhead]. It is called when the
// program begins and its heap is empty. What a program allocates until it takes the guard is far
// below the size at which a collection begins, which must not be while a guard is forked (see
// forkGuard), unless the environment has another size: then nothing is started. A guard that nobody
// takes ends with this process.
func StartAhead() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	a := &Ahead{Signals: NewSignals(), done: make(chan struct{})}
	ahead = a
	go func() {
		a.Signals.CatchStops()
		a.guard, a.err = Start(Config{PauseGC: func() func() { return func() {} }})
		close(a.done)
		a.Signals.CatchAll()
	}()
}

// TakeAhead returns what StartAhead has begun, or nil, to one caller. From here on the signals are
// the caller's to answer, and the collector to pause until Started returns.
func TakeAhead() *Ahead {
	a := ahead
	ahead = nil
	return a
}

// Started waits for the guard, and returns why there is none as Start does.
func (a *Ahead) Started() (*Guard, error) {
	<-a.done
	return a.guard, a.err
}
