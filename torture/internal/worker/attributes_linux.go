package worker

import "syscall"

// attributes are those of a worker: a process group of its own, so that Ctrl-C reaches the
// conductor alone, and death with the conductor's thread, because a stopped worker would not see
// that its standard input has ended.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
