package guard

import "syscall"

// childAttributes puts the child into the process group, or into one of its own where group is 0,
// and has the kernel kill it when the guard ends.
func childAttributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}
