//go:build unix

package process

import "syscall"

// Pause stops the process (SIGSTOP): its connections stay open and nothing is answered, until
// Resume.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on (SIGCONT). A process that is not paused notices nothing.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }
