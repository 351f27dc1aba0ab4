//go:build linux || darwin

package guard

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// run starts the child. The deadline comes with the command and is looked at here, in the last step before the fork:
// interlock may have been stopped since it took the lock.
func (w *warden) run(m message) {
	if w.pid != 0 {
		return
	}
	<-w.ready
	held, err := w.link.take(m.Files)
	if err != nil {
		w.report(message{Op: opFailed, Errno: int(unix.EBADF)})
		return
	}
	for i, fd := range held {
		held[i] = settle(fd)
	}
	if m.Deadline != (Deadline{}) && !w.stopping {
		w.deadline = m.Deadline
	}
	if d := w.deadline; w.refused || d != (Deadline{}) && Now()+m.Least >= d.Term {
		w.report(message{Op: opLate})
		return
	}

	pid, err := w.fork(m)
	if err != nil {
		errno, ok := err.(syscall.Errno) //nolint:errorlint // ForkExec returns a plain Errno
		if !ok {
			errno = syscall.EIO
		}
		w.report(message{Op: opFailed, Errno: int(errno)})
		return
	}
	w.pid, w.killRest = pid, m.KillRest
	if m.Group == 0 {
		w.group = pid
	}
	// Else a pipeline never ends: the other end waits until the last descriptor is closed.
	replaceByNull(0, 1, 2)
	for _, fd := range w.users {
		_ = unix.Close(fd)
	}
	w.report(message{Op: opStarted, Pids: []int{pid}})
	for _, sig := range w.queued {
		w.pass(sig)
	}
	w.queued = nil
	w.look()
}

// shell runs what is executable and in no form that the kernel knows, as a script without #!: the rule of execvp(3), and so of flock and env.
const shell = "/bin/sh"

func (w *warden) fork(m message) (pid int, err error) {
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
