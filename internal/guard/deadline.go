package guard

import "time"

// Deadline says when the command has to be over, in nanoseconds of the clock that [Now] reads. The
// zero Deadline is none.
type Deadline struct {
	Term int64 // SIGTERM to the whole tree; from here on no later Deadline is heeded
	Kill int64 // SIGKILL to whatever is left
	End  int64 // nothing may be left; between Kill and End interlock stands in for a guard that is stopped
}

// The time that killing a tree may take on a busy machine. It is taken from the grace.
const (
	leastMargin = 20 * time.Millisecond
	mostMargin  = 250 * time.Millisecond
)

// DeadlineAt returns the deadline of a command that is asked to stop at until and must be over a
// grace later. SIGKILL comes a quarter of the grace early, but not less than 20 ms and not more
// than 250 ms; where the grace is shorter than that, SIGKILL comes at until.
func DeadlineAt(until int64, grace time.Duration) Deadline {
	margin := min(max(grace/4, leastMargin), mostMargin)
	return Deadline{
		Term: until,
		Kill: until + int64(max(grace-margin, 0)),
		End:  until + int64(grace),
	}
}

// backstop is the time at which interlock no longer waits for the guard.
func (d Deadline) backstop() int64 { return d.Kill + (d.End-d.Kill)/2 }
