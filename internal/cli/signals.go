package cli

import (
	"os"
	"sync"
	"syscall"

	"github.com/interlock-go/interlock/internal/guard"
)

// caught are the signals that this process catches for its command, and what is done with those
// that come while there is none. Only the goroutine that runs the job uses it.
type caught struct {
	*guard.Signals
	outside sync.Locker // held while this process is stopped: see guard.StopSelf
	kept    []os.Signal // for the command, once it runs
}

// withoutCommand does what a signal asks for while there is no command, and returns an error when
// that is to end.
func (c *caught) withoutCommand(s os.Signal) error {
	sig, ok := s.(syscall.Signal)
	switch {
	case ok && guard.Ends(sig):
		return &commandError{status: 128 + int(sig), by: sig}
	case ok && guard.Stops(sig):
		guard.StopSelf(c.outside)
	default:
		c.kept = append(c.kept, s)
	}
	return nil
}
