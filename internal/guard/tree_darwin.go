package guard

import "golang.org/x/sys/unix"

// lookUp returns a function that lists the children of a process.
func lookUp() func(pid int) []int {
	table := map[int][]int{}
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err == nil {
		for i := range all {
			pid, parent := int(all[i].Proc.P_pid), int(all[i].Eproc.Ppid)
			table[parent] = append(table[parent], pid)
		}
	}
	return func(pid int) []int { return table[pid] }
}

// childless reports whether it is sure that this process has no child; here it is not.
func childless() bool { return false }

// parentOf returns the parent of pid.
func parentOf(pid int) (parent int, ok bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return 0, false
	}
	return int(p.Eproc.Ppid), true
}

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// alive reports whether pid runs or could.
func alive(pid int) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(p.Proc.P_pid) == pid && p.Proc.P_stat != zombie
}

// stop is SSTOP of <sys/proc.h>.
const stop = 4

// stopped reports whether pid is stopped by a signal.
func stopped(pid int) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(p.Proc.P_pid) == pid && p.Proc.P_stat == stop
}

// send sends sig to p. There is no way here to pin a process, so between the look and the signal
// its number may pass on to another one; macOS hands numbers out in turn, which makes that
// unlikely.
func (t *tree) send(p process, sig unix.Signal) error { return unix.Kill(p.pid, sig) }

// becomeSubreaper does nothing: macOS has no subreapers.
func becomeSubreaper() error { return nil }
