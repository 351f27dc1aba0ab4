package worker

import "syscall"

// attributes are those of a worker: a process group of its own, so that Ctrl-C reaches the
// conductor alone. The system hangs up on a stopped process group that the conductor's death leaves
// behind.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
