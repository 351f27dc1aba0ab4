//go:build !linux

package servertest

import "syscall"

// attributes leave the server in the group of its starter: the terminal's interrupt is all that ends both.
func attributes() *syscall.SysProcAttr { return nil }
