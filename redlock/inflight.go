package redlock

import (
	"strconv"
	"time"
)

// inflight is one call of a session while masters are asked for it. It is over when its condition
// holds, as a rule when a majority has decided. What is under way then goes on by itself, and its
// answers are heard all the same. Guarded by the session's mutex.
type inflight struct {
	tally
	since    time.Time   // the start of the call
	joins    bool        // it is of a claim that joins lines, which it can where a subscription is confirmed
	proposal string      // of a counter, the same for all masters
	over     func() bool // nil until the caller waits
	awaits   uint64      // by master: which linger waits for; 0 for all
	late     time.Time   // an answer after that is late; zero as long as none is
	ended    bool
	rested   bool
	done     chan struct{} // closed when it has ended
	rest     chan struct{} // closed when all have answered, or have not in time
}

func newInflight(since time.Time) *inflight {
	return &inflight{since: since, done: make(chan struct{}), rest: make(chan struct{})}
}

// propose makes up the counter that the masters are offered. s.mu may be held.
func (f *inflight) propose(d *shared, name string, above int64) {
	f.proposal = strconv.FormatInt(d.propose(name, above), 10)
}

// answer counts a master's answer, or that there was none. One that has answered in time is waited
// for again.
func (f *inflight) answer(n *node, err error) {
	if err == nil && (f.late.IsZero() || time.Now().Before(f.late)) {
		n.late.Store(false)
	}
	f.tally.answer(n, err)
}

// check ends the call when its condition holds.
func (f *inflight) check() {
	if f == nil || f.over == nil {
		return
	}
	if !f.ended && f.over() {
		f.ended = true
		if f.late.IsZero() {
			f.late = lateness(f.half())
		}
		close(f.done)
	}
	if !f.rested && (f.out == 0 || f.awaits != 0 && f.awaits&f.missing() == 0) {
		f.rested = true
		close(f.rest)
	}
}

// stragglerWait bounds how long a call waits for the last masters after a majority has answered. A
// claim that joins a line afterwards then comes behind it everywhere, and need not step back.
const stragglerWait = 20 * time.Millisecond

// half is how long a call waits for the others as a rule: half the time that a majority took, by
// now. So one that is slow or silent cannot make the call much longer, however fast or slow the
// others are.
func (f *inflight) half() time.Duration { return time.Since(f.since) / 2 }

// lateness is when that is over.
func lateness(patience time.Duration) time.Time { return time.Now().Add(min(stragglerWait, patience)) }

// laggardWait is how long those get that have not answered a question to all masters when a
// majority has.
const laggardWait = 5 * stragglerWait
