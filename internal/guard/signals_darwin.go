package guard

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

var ofThisSystem []unix.Signal

func ignored(sig unix.Signal) bool { return signal.Ignored(sig) }

// stopThread stops the process, except as a child of launchd: nobody would continue it.
func stopThread() {
	if os.Getppid() != 1 {
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	}
}
