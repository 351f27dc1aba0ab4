package drivertest

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// delays are what is seen of the machine and the store: how long this process did not run, how
// long a session of the suite was over before its Renew, and how long the store took for an answer.
type delays struct {
	machine time.Duration // by which the harness says that its machine may be late

	mu      sync.Mutex
	late    time.Duration // the longest time for which this process was kept from running
	overdue time.Duration // the longest time for which a session was over that was to live
	slowest time.Duration // the longest that the store took for an answer
	tooLate string        // the first step of the suite that came too late for what depends on it
}

const (
	patience = 10 * time.Second // for a call that nothing holds up
	promptly = 5 * time.Second  // after which a call whose context has ended must be back, whatever the machine
)

// tick is how often the trial looks whether this process still runs.
const tick = 20 * time.Millisecond

// bears is how often a session's time is longer than what this process may not run meanwhile.
const bears = 5

// watchClock notes how late its ticks come, until ctx ends.
func (d *delays) watchClock(ctx context.Context) {
	for {
		from := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(tick):
		}
		d.stoodStill(time.Since(from) - tick)
	}
}

// stoodStill notes that this process did not run for so long.
func (d *delays) stoodStill(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = max(d.late, by)
}

// lateness returns the longest time for which this process has been kept from running so far.
func (d *delays) lateness() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.late
}

// slack is added to every upper bound on time: what the harness says of its machine, and what was
// seen of it.
func (d *delays) slack() time.Duration { return d.machine + d.lateness() }

// answered notes how long the store took to answer a call, begun at from, that nothing holds up.
func (d *delays) answered(from time.Time, err error) {
	took := time.Since(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.slowest = max(d.slowest, took)
	}
}

// overran notes that the time of a session that was to live was over for so long.
func (d *delays) overran(session string, late time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.overdue = max(d.overdue, late)
	if d.tooLate == "" {
		d.tooLate = fmt.Sprintf("the time of %s's session was over for %v without a Renew", session, late)
	}
}

// slow notes that the store is slow, if it takes a second for an answer: then nobody knows what
// time it needs for more.
func (d *delays) slow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tooLate == "" && d.slowest >= patience/10 {
		d.tooLate = fmt.Sprintf("the store took %v for an answer", d.slowest)
	}
}

// why returns why a fault that is found now proves nothing, with sessions of ttl, or "": the
// process did not run for longer than they can bear, or the suite has left a session without a
// Renew until its time was over.
func (d *delays) why(ttl time.Duration) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tooLate == "" && d.late >= ttl/bears {
		return fmt.Sprintf("this process did not run for %v, with sessions of %v", d.late, ttl)
	}
	return d.tooLate
}

// needs is a time for sessions, after those of ttl, that bears twice of what was seen of the
// machine.
func (d *delays) needs(ttl time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(2*bears*d.late, 2*(ttl+d.overdue))
}
