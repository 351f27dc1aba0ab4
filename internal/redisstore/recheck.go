package redisstore

import (
	"math/rand/v2"
	"time"
)

// What stands in a waiting claim's way, as the scripts answer.
const (
	BehindOurs    = iota // a claim that is handed on when it leaves
	BehindForeign        // a program that tells nobody when it leaves
	BehindGap            // nobody: the name is left free for such programs for a while
)

// Recheck is when a waiting claim asks again by itself. The zero value is never: a message or a renewal says.
type Recheck struct {
	At    time.Time
	polls int // in a row, of a name that another program holds
}

// Schedule takes in an answer. Only the head of a line asks again, when what stands in its way is over: a moment after,
// since the server's clock ticks in milliseconds; wait is the milliseconds until then, negative where there is no end. A
// name that another program holds is asked for after 5 ms and less and less often, up to every 50 ms, since nobody tells
// when it is free.
func (r *Recheck) Schedule(now time.Time, wait int64, head bool, behind int64) {
	r.At = time.Time{}
	if !head {
		r.polls = 0
		return
	}
	after := time.Duration(wait)*time.Millisecond + time.Millisecond
	if behind == BehindForeign {
		pause := min(5*time.Millisecond<<min(r.polls, 4), 50*time.Millisecond)
		pause -= rand.N(pause / 4)
		r.polls++
		if wait < 0 || pause < after {
			after = pause
		}
	} else if r.polls = 0; wait < 0 {
		return // without an end, and of ours: the next renewal says more
	}
	r.At = now.Add(after)
}

// Retry schedules another question to a server that did not answer, later and later.
func (r *Recheck) Retry(now time.Time) {
	r.At = now.Add(50*time.Millisecond<<min(r.polls, 5) + rand.N(20*time.Millisecond))
	r.polls++
}
