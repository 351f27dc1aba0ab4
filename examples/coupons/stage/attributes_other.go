//go:build !linux

package stage

import "syscall"

// attributes are those of a shop: a process group of its own, so that Ctrl-C reaches the play alone. The system hangs up
// on a stopped process group that the play's death leaves behind.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
