//go:build linux || darwin

package guard

import "os"

// Descends reports whether this process descends from the process pid: whether pid is its parent,
// the parent of that, or above. A guard adopts what a command leaves behind, so on Linux all that a
// command has started descends from its interlock.
func Descends(pid int) bool {
	for p, ok := os.Getppid(), true; ok && p > 0; p, ok = parentOf(p) {
		if p == pid {
			return true
		}
	}
	return false
}
