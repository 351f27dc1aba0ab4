package guard

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/interlock-go/interlock/internal/mutant"
)

// childAttributes puts the child into the process group, or into one of its own where group is 0, and has the kernel
// kill it when the guard ends.
func childAttributes(group int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
	if mutant.On("guard-pdeathsig") {
		a.Pdeathsig = 0
	}
	if mutant.On("guard-tcsetpgrp") && group != 0 {
		signal.Ignore(syscall.SIGTTOU)
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			a.Pgid, a.Foreground, a.Ctty = 0, true, int(tty.Fd())
		}
	}
	return a
}
