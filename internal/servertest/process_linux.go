package servertest

import "syscall"

// attributes keep the terminal's signals from the server and have the kernel kill it with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
