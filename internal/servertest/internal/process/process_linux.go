package process

import (
	"errors"
	"syscall"
)

// attributes keep the terminal's signals from the process and have the kernel kill it with the
// thread that started it.
func attributes(as *Account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return a
}

// kill kills the process and its children, such as those that write a file or feed a replica. They
// are a process group.
func (p *Process) kill() error {
	if p.Over() {
		return nil
	}
	if err := syscall.Kill(-p.Pid(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
