//go:build linux || darwin

package guard

import (
	"math"
	"runtime"
	"runtime/debug"
)

// A child that Ctrl-Z stops before it executes its program keeps the thread that forked asleep, and that thread keeps its
// right to run Go code. A garbage collection stops everything else for a moment, waits for that thread too, and so for the
// child: no goroutine is left to continue or kill it. So nothing is collected until the program is executed: in interlock
// while it forks, in the guard from its beginning on.

// collectNothing stops the garbage collector and returns what starts it again.
func collectNothing() (over func()) {
	limit, percent := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(-1)
	runtime.GC() // comes after one that was about to begin
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
