// Package metrics has what the modules that measure locks have in common: the values of labels, which are few, and the bounds of buckets.
//
// Those modules are of versions of their own. What is exported here gets more and does not change, or a program that takes a newer core
// with an older one of them does not compile.
package metrics

import (
	"slices"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// The closed sets of values of the labels result and reason.
var (
	Results = [...]interlock.Result{
		interlock.Granted, interlock.Passed, interlock.Held, interlock.TimedOut, interlock.Cancelled, interlock.Unavailable, interlock.Failed,
	}
	Reasons = [...]interlock.Reason{
		interlock.LostExpired, interlock.LostStalled, interlock.LostSession, interlock.LostGone, interlock.LostBroken, interlock.LostMaxHold,
		interlock.LostShutdown,
	}
)

// Kinds is how many kinds there are, with one for what is none.
const Kinds = int(driver.Permit) + 1

// OfResult returns the index of a result in [Results]. What is none of them counts as the last, an error.
func OfResult(r interlock.Result) int {
	if i := slices.Index(Results[:], r); i >= 0 {
		return i
	}
	return len(Results) - 1
}

// OfReason returns the index of a reason in [Reasons]. What is none of them counts as the first.
func OfReason(r interlock.Reason) int { return max(slices.Index(Reasons[:], r), 0) }

// OfKind returns an index below [Kinds]. What is no kind counts as 0, which is none.
func OfKind(k driver.Kind) int {
	if int(k) >= Kinds {
		return 0
	}
	return int(k)
}

// The bounds of buckets, in seconds: of waits, of holds, and of the trust that is left at a renewal.
var (
	Waits = []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 300,
	}
	Holds  = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600}
	Slacks = []float64{0, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 7.5, 10, 15, 30, 60, 300}
)
