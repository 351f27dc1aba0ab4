//go:build linux || darwin

package guard

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Shell scripts name descriptors by number: 3 to 9, 200 for flock(1); bash takes 10 and up, and
// 255. The session's stand where hardly anybody else does, and below 64: beyond that the kernel
// makes a larger table, for which a process of several threads waits tens of milliseconds
// (synchronize_rcu).
const firstInherited = 50

// passed reports whether fd is open and would be open after an exec.
func passed(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// inherited lists the descriptors above 2 that this process was started with: those that an exec
// keeps. What Go opens is not among them.
func inherited() []int {
	dir := "/proc/self/fd"
	if _, err := os.Stat(dir); err != nil {
		dir = "/dev/fd"
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	names, _ := d.Readdirnames(-1)
	_ = d.Close()
	var fds []int
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 && passed(fd) {
			fds = append(fds, fd)
		}
	}
	return fds
}

// inPlace is the list of descriptors for a new process in which everything that an exec keeps stays
// where it is, and so does extra. os/exec's ExtraFiles would instead be put over what the user
// passes as 3, 4, … (make's job server).
func inPlace(extra int) []uintptr {
	files := make([]uintptr, max(3, extra+1))
	for fd := range files {
		files[fd] = uintptr(fd)
		if fd != extra && !passed(fd) {
			files[fd] = ^uintptr(0)
		}
	}
	return files
}

// moveHigh moves fd out of the way of numbers that programs choose themselves, and lets an exec
// keep it.
func moveHigh(fd int) int {
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, firstInherited)
	if err != nil { // above the limit of open files: stay
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
		return fd
	}
	_ = unix.Close(fd)
	return high
}

// replaceByNull puts /dev/null in the place of fds, so that a program at the other end depends on
// the child alone.
func replaceByNull(fds ...int) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for _, fd := range fds {
		_ = unix.Dup2(null, fd)
	}
	_ = unix.Close(null)
}

func exitStatus(ws syscall.WaitStatus) State {
	if ws.Signaled() {
		return State{Signal: ws.Signal()}
	}
	return State{Code: ws.ExitStatus()}
}
