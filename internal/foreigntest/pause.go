//go:build unix

package foreigntest

import "syscall"

// Pause stops the process as it is, with SIGSTOP, and returns when all of it stands still; what it is asked meanwhile it does when it
// goes on.
func (c *Client) Pause() error {
	if err := c.process.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_, err := syscall.Wait4(c.process.Process.Pid, nil, syscall.WUNTRACED, nil)
	return err
}

// Resume lets a stopped process go on.
func (c *Client) Resume() error { return c.process.Process.Signal(syscall.SIGCONT) }
