package main

import (
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// origin ties Go's monotonic clock, which starts anew in each process and is
// read without a system call, to CLOCK_MONOTONIC, which all processes share.
var origin = calibrate()

type anchor struct {
	at   time.Time // by Go's clock
	mono int64     // the same instant by CLOCK_MONOTONIC, in nanoseconds
}

// calibrate brackets the shared clock between two readings of Go's and keeps
// the tightest of a few brackets, so that being preempted inside one does not
// shift this process against the others.
func calibrate() anchor {
	var best anchor
	tightest := time.Duration(1<<63 - 1)
	for range 20 {
		before := time.Now()
		mono := monotonic.Now()
		width := time.Since(before)
		if width < tightest {
			tightest = width
			best = anchor{at: before, mono: int64(mono) - width.Nanoseconds()/2}
		}
	}
	return best
}

// now is CLOCK_MONOTONIC in nanoseconds: comparable between the processes of
// this machine.
func now() int64 { return origin.mono + time.Since(origin.at).Nanoseconds() }

// sleepUntil returns at t by now, or later.
func sleepUntil(t int64) { time.Sleep(time.Duration(t - now())) }
