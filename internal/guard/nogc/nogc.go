// Package nogc pauses the garbage collector. It is no part of package guard, which imports nothing that is initialized late.
package nogc

import (
	"math"
	"runtime"
	"runtime/debug"
)

// Pause stops the garbage collector and returns what starts it again.
func Pause() (resume func()) {
	limit, percent := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(-1)
	runtime.GC() // comes after one that was about to begin
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
