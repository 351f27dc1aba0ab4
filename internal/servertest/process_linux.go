package servertest

import (
	"errors"
	"syscall"
)

// attributes keep the terminal's signals from the server and have the kernel kill it with the thread that started it.
func attributes(as *account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return a
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
