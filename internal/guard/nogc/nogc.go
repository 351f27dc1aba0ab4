// Package nogc pauses the garbage collector. It is no part of package guard, which imports nothing that is initialized late.
package nogc

import (
	"math"
	"runtime"
	"runtime/debug"
)

// Pause stops the garbage collector and returns what starts it again.
func Pause() (resume func()) {
	resume = PauseAlone()
	runtime.GC() // comes after one that was about to begin
	return resume
}

// PauseAlone is Pause for a program that has just begun, while no other goroutine allocates: none is about to begin a collection then, and
// for one that goes on SetGCPercent waits. A collection for nothing else would take a fifth of the time from start to end.
func PauseAlone() (resume func()) {
	limit, percent := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
