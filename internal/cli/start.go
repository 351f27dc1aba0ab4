package cli

import (
	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/internal/guard/nogc"
)

// guardStart is a guard that is being started. That takes some milliseconds, in which the store is
// opened and the lock waited for.
type guardStart struct {
	done  chan struct{} // closed when the guard has started, or has not
	guard *guard.Guard  // once done is closed
	err   error         // the same
}

// startFirst starts the first guard of this process, or takes the one that was started while the
// process was initialized. It returns the signals, of which all are caught soon.
func startFirst() (*guardStart, *guard.Signals) {
	s := &guardStart{done: make(chan struct{})}
	if a := guard.TakeAhead(); a != nil { // the collector has its usual limits
		resume := nogc.PauseBeforeFirst()
		go func() {
			defer close(s.done)
			s.guard, s.err = a.Started()
			resume()
		}()
		return s, a.Signals
	}
	signals := guard.NewSignals()
	go func() {
		signals.CatchStops()
		s.start()          // with other limits it collects already
		signals.CatchAll() // while the guard begins
	}()
	return s, signals
}

// startNext starts another guard, for the next command.
func startNext() *guardStart {
	s := &guardStart{done: make(chan struct{})}
	go s.start()
	return s
}

func (s *guardStart) start() {
	defer close(s.done)
	s.guard, s.err = guard.Start(guard.Config{PauseGC: nogc.Pause})
}

// close ends the guard, if it has started.
func (s *guardStart) close() {
	<-s.done
	if s.guard != nil {
		s.guard.Close()
	}
}
