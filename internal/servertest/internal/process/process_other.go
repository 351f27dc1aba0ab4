//go:build !linux

package process

import (
	"os"
	"syscall"
)

// attributes leave the process in the group of its starter: the terminal's interrupt is all that
// ends both.
func attributes(*Account) *syscall.SysProcAttr { return nil }

func (p *Process) kill() error { return p.signal(os.Kill) }
