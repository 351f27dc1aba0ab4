package servertest

import (
	"errors"
	"syscall"
)

// attributes keep the terminal's signals from the server and have the kernel kill it with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the process and its copies that write a file or feed a replica: they are a group.
func (p *process) kill() error {
	if p.over() {
		return nil
	}
	if err := syscall.Kill(-p.pid(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
