//go:build linux || darwin

package guard

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// run starts the child. The deadline comes with the command and is looked at here, in the last step
// before the fork: interlock may have been stopped since it took the lock.
func (s *supervisor) run(m message) {
	if s.pid != 0 {
		return
	}
	<-s.ready
	held, err := s.link.take(m.Files)
	if err != nil {
		s.report(message{Op: opFailed, Errno: int(unix.EBADF)})
		return
	}
	for i, fd := range held {
		held[i] = moveHigh(fd)
	}
	if m.Deadline != (Deadline{}) && !s.stopping {
		s.deadline = m.Deadline
	}
	if d := s.deadline; s.refused || d != (Deadline{}) && Now()+m.Least >= d.Term {
		s.report(message{Op: opLate})
		return
	}

	pid, err := s.fork(m)
	if err != nil {
		errno, ok := err.(syscall.Errno) //nolint:errorlint // ForkExec returns a plain Errno
		if !ok {
			errno = syscall.EIO
		}
		s.report(message{Op: opFailed, Errno: int(errno)})
		return
	}
	s.pid, s.killRest = pid, m.KillRest
	if m.Group == 0 {
		s.group = pid
	}
	// Else a pipeline never ends: the other end waits until the last descriptor is closed.
	replaceByNull(0, 1, 2)
	for _, fd := range s.users {
		_ = unix.Close(fd)
	}
	s.report(message{Op: opStarted, Pids: []int{pid}})
	for _, sig := range s.queued {
		s.forward(sig)
	}
	s.queued = nil
	s.enforce()
}

// shell runs what is executable and in no form that the kernel knows, as a script without #!: the
// rule of execvp(3), and so of flock and env.
const shell = "/bin/sh"

func (s *supervisor) fork(m message) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Dir:   string(m.Dir),
		Env:   toStrings(m.Env),
		Files: inPlace(2),
		Sys:   childAttributes(m.Group),
	}
	path, args := string(m.Path), toStrings(m.Args)
	pid, err = syscall.ForkExec(path, args, attr)
	if errors.Is(err, unix.ENOEXEC) {
		pid, err = syscall.ForkExec(shell, append([]string{shell, path}, args[1:]...), attr)
	}
	return pid, err
}
