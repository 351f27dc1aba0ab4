package stage

import "syscall"

// attributes are those of a shop: a process group of its own, so that Ctrl-C reaches the play alone, and death with the
// play's thread, because a stopped shop would not see that its standard input has ended.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
