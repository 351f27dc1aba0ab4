//go:build unix

package foreigntest

import "syscall"

// Pause stops the process as it is, with SIGSTOP; what it is asked meanwhile it does when it goes on.
func (c *Client) Pause() error { return c.process.Process.Signal(syscall.SIGSTOP) }

// Resume lets a stopped process go on.
func (c *Client) Resume() error { return c.process.Process.Signal(syscall.SIGCONT) }
