//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endWithGroup makes the test the leader of a process group, so that what it started can be found again.
func endWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup ends what the test left behind. The group keeps its number while it has a member, so this cannot hit
// strangers unless the number was given away between the end of the test and here.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
