//go:build !linux

package servertest

import (
	"os"
	"syscall"
)

// attributes leave the server in the group of its starter: the terminal's interrupt is all that ends both.
func attributes(*account) *syscall.SysProcAttr { return nil }

func (p *process) kill() error { return p.signal(os.Kill) }
