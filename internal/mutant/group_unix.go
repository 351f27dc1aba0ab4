//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// lead makes the test the leader of a session: its processes are one group unless they leave it, and none of them has
// the terminal of whoever hunts.
func lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// sweep ends what the test left behind: many a bug is that processes survive. The group keeps its number while it has a
// member. Those that have left the group still have the test's own setting in their environment, which Linux shows.
func sweep(cmd *exec.Cmd, setting string) {
	if cmd.Process == nil {
		return
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+setting+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
