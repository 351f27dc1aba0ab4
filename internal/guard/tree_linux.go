package guard

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lookUp returns a function that lists the children of a process.
func lookUp() func(pid int) []int {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err == nil {
		return listedChildren
	}
	// A kernel without CONFIG_PROC_CHILDREN: ask every process for its parent.
	table := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, parent, ok := status(pid); ok {
			table[parent] = append(table[parent], pid)
		}
	}
	return func(pid int) []int { return table[pid] }
}

// childless reports whether this process has no child, by one call. To list those that it has is a
// file of /proc for each thread, of which the kernel keeps a name until the thread ends.
func childless() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD
}

// listedChildren reads the children of every thread of pid: each thread has its own.
func listedChildren(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	d, err := os.Open(dir)
	if err != nil {
		return nil // it has ended
	}
	threads, _ := d.Readdirnames(-1)
	_ = d.Close()
	var pids []int
	for _, thread := range threads {
		list, err := os.ReadFile(dir + thread + "/children")
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// status reads the state letter and the parent of pid.
func status(pid int) (state byte, parent int, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The program's name stands in parentheses and may contain anything, so the fields are counted
	// after the last ")".
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent, err == nil
}

// parentOf returns the parent of pid; 0 where that is outside of this PID namespace.
func parentOf(pid int) (parent int, ok bool) {
	_, parent, ok = status(pid)
	return parent, ok
}

// stopped reports whether pid is stopped by a signal.
func stopped(pid int) bool {
	state, _, ok := status(pid)
	return ok && state == 'T'
}

// alive reports whether pid runs or could.
func alive(pid int) bool {
	state, _, ok := status(pid)
	return ok && state != 'Z' && state != 'X'
}

// send sends sig to p if it is still the process that was seen. The number of a process whose
// parent has collected it may belong to a stranger by now: so it is pinned by a pidfd first, and
// then asked for its parent again.
func (t *tree) send(p process, sig unix.Signal) error {
	if p.parent == t.root {
		return unix.Kill(p.pid, sig) // an own child: nobody else collects it
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ENOSYS || err == unix.EPERM { // before Linux 5.3, or in a narrow seccomp profile
		fd = -1
	} else if err != nil {
		return err
	} else {
		defer func() { _ = unix.Close(fd) }()
	}
	if _, parent, ok := status(p.pid); !ok || parent != p.parent && parent != t.root {
		return unix.ESRCH
	}
	if fd == -1 {
		return unix.Kill(p.pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// becomeSubreaper makes this process the parent of all its descendants whose parents end.
func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
