package redisstore

import (
	"math/rand/v2"
	"time"
)

// What a waiting claim waits for, as the scripts answer.
const (
	BehindOurs    = iota // a claim whose release hands the lock on
	BehindForeign        // a lock of another program, whose release sends no message
	BehindGap            // nothing: the name is left free for such programs for a while
)

// Recheck is when a waiting claim asks again by itself. The zero value is never: it learns of a
// grant by a message or a renewal.
type Recheck struct {
	At    time.Time
	polls int // in a row: of a name that another program holds, or without an answer
}

// Schedule sets the time by an answer. Only the head of a line asks again, a moment after what it
// waits for expires, since the server's clock ticks in milliseconds. wait is the milliseconds until
// then, negative where it does not expire. A name that another program holds is polled, after 5 ms
// and less and less often, up to every 50 ms, since no message says that it is free.
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

// Retry sets the time after a server did not answer, further away each time.
func (r *Recheck) Retry(now time.Time) {
	r.At = now.Add(50*time.Millisecond<<min(r.polls, 5) + rand.N(20*time.Millisecond))
	r.polls++
}
