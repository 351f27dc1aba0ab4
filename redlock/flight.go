package redlock

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"time"
)

// flight is what one call has asked of the masters. It is over when its condition holds, as a rule when a majority has
// decided; what is still under way then goes on by itself, and its answers are taken in all the same. Guarded by the
// session's mutex.
type flight struct {
	since       time.Time // the start of the call
	out         int       // orders without an answer
	yes, failed uint64    // by master: which have answered, and which have not
	sent        bool      // one of those that failed may have been carried out, or was answered
	err         error
	proposal    string // of a counter, the same for all masters
	over        func() bool
	awaits      uint64 // by master: which linger waits for; 0 for all
	rested      bool
	ended       bool
	done        chan struct{}
	rest        chan struct{} // closed when all have answered, or have not in time
}

func newFlight(since time.Time) *flight {
	return &flight{since: since, done: make(chan struct{}), rest: make(chan struct{})}
}

// propose makes up the counter that the masters are offered. s.mu may be held.
func (f *flight) propose(d *Driver, name string, above int64) {
	f.proposal = strconv.FormatInt(d.propose(name, above), 10)
}

// answer counts a master's answer, or that there was none.
func (f *flight) answer(n *node, err error) {
	f.out--
	if err == nil {
		n.late.Store(0)
		f.yes |= 1 << n.i
		f.sent = true
		return
	}
	f.failed |= 1 << n.i
	f.sent = f.sent || uncertain(err)
	if f.err == nil {
		f.err = err
	}
}

// answered is how many masters have answered, silent how many have not although they were asked.
func (f *flight) answered() int { return bits.OnesCount64(f.yes) }
func (f *flight) silent() int   { return bits.OnesCount64(f.failed &^ f.yes) }

// check ends the flight when its condition holds.
func (f *flight) check() {
	if f == nil || f.over == nil {
		return
	}
	if !f.ended && f.over() {
		f.ended = true
		close(f.done)
	}
	if !f.rested && (f.out == 0 || f.awaits != 0 && f.awaits&^(f.yes|f.failed) == 0) {
		f.rested = true
		close(f.rest)
	}
}

// await lets the flight go and returns when it is over or the caller gives up.
func (s *session) await(ctx context.Context, f *flight, over func() bool) error {
	s.mu.Lock()
	f.over = over
	f.check()
	s.mu.Unlock()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enough reports whether a majority has answered, or cannot any more.
func (f *flight) enough(d *Driver) bool {
	return f.answered() >= d.quorum || f.silent() > len(d.nodes)-d.quorum
}

// grace is how long a claim that joins a line, or leaves one in which others wait, waits for the last masters after a
// majority has answered. Whoever joins afterwards then comes behind it everywhere, and need not step back.
const grace = 20 * time.Millisecond

// linger waits for the masters that have not answered yet, but for those that have not answered lately either. One that is
// waited for in vain is late: nobody waits for it until it has answered again, or for a second.
func (s *session) linger(ctx context.Context, f *flight, limit time.Duration) {
	s.mu.Lock()
	var missing uint64
	for _, n := range s.d.nodes {
		if (f.yes|f.failed)&(1<<n.i) == 0 && !n.ailing() {
			missing |= 1 << n.i
		}
	}
	f.awaits = missing
	s.mu.Unlock()
	if missing == 0 {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-f.rest:
	case <-timer.C:
		s.mu.Lock()
		for _, n := range s.d.nodes {
			if missing&^(f.yes|f.failed)&(1<<n.i) != 0 {
				n.late.Store(time.Now().UnixNano())
			}
		}
		s.mu.Unlock()
	case <-ctx.Done():
	}
}

// unavailable says that too few masters have answered, and what the first of the others said. Only where nothing was done
// anywhere does the error match [driver.ErrNotSent] or [driver.ErrRefused].
func (d *Driver) unavailable(f *flight) error {
	const format = "redlock: %d of %d masters answered, want %d or more: "
	if f.sent {
		return fmt.Errorf(format+"%v", f.answered(), len(d.nodes), d.quorum, f.err)
	}
	return fmt.Errorf(format+"%w", f.answered(), len(d.nodes), d.quorum, f.err)
}
