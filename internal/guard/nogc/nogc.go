// Package nogc pauses the garbage collector. It is no part of package guard, which imports nothing
// that is initialized late.
package nogc

import (
	"math"
	"runtime"
	"runtime/debug"
)

// Pause stops the garbage collector and returns what starts it again. When it returns nothing is
// left of a collection, and none is about to begin.
//
// SetGCPercent alone does not give that: it waits for the marking, and behind that the runtime
// waits once more for all that run Go code, while it keeps a processor's worth of the right to run
// it. A thread that forks then keeps another; on two processors nothing is left.
func Pause() (resume func()) {
	resume = PauseBeforeFirst()
	runtime.GC() // comes after one that was about to begin, and returns after all that one does
	return resume
}

// PauseBeforeFirst is Pause for a program that has collected nothing yet and is far from it: one
// that has just begun, with the collector's usual limits. A collection for nothing else would take
// a fifth of the time from start to end.
func PauseBeforeFirst() (resume func()) {
	limit, percent := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
