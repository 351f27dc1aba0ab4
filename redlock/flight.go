package redlock

import (
	"errors"
	"math/bits"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// flight is what one call has asked of the masters. It is over when its condition holds, as a rule when a majority has
// decided; what is still under way then goes on by itself, and its answers are taken in all the same. Guarded by the
// session's mutex.
type flight struct {
	since       time.Time // the start of the call
	joins       bool      // it is of a claim that joins lines, which it can where a subscription is confirmed
	out         int       // orders without an answer
	asked       uint64    // by master: which have got one
	yes, failed uint64    // the same: which have answered, and which have not
	refused     uint64    // the same: which of those that failed have answered that they do not do it
	finally     uint64    // the same: which of these will not do it however often they are asked
	refusals    []error   // what these said
	sent        bool      // one of those that failed may have been carried out, or was answered
	err         error
	proposal    string // of a counter, the same for all masters
	over        func() bool
	awaits      uint64    // the same: which linger waits for; 0 for all
	late        time.Time // an answer after that is late; zero as long as none is
	rested      bool
	ended       bool
	done        chan struct{}
	rest        chan struct{} // closed when all have answered, or have not in time
}

func newFlight(since time.Time) *flight {
	return &flight{since: since, done: make(chan struct{}), rest: make(chan struct{})}
}

// propose makes up the counter that the masters are offered. s.mu may be held.
func (f *flight) propose(d *shared, name string, above int64) {
	f.proposal = strconv.FormatInt(d.propose(name, above), 10)
}

// answer counts a master's answer, or that there was none.
func (f *flight) answer(n *node, err error) {
	f.out--
	f.heard(n, err)
	if err == nil {
		f.yes |= 1 << n.i
		f.sent = true
		return
	}
	f.failed |= 1 << n.i
	if errors.Is(err, driver.ErrRefused) || redisconn.Is(err, "NOVOTE") {
		f.refused |= 1 << n.i
	}
	f.sent = f.sent || uncertain(err)
	if final(err) && f.finally&(1<<n.i) == 0 {
		f.finally |= 1 << n.i
		f.refusals = append(f.refusals, err)
	} else if f.err == nil {
		f.err = err
	}
}

// heard has a master waited for again that has answered in time.
func (f *flight) heard(n *node, err error) {
	if err == nil && (f.late.IsZero() || time.Now().Before(f.late)) {
		n.late.Store(false)
	}
}

// give counts an order for a master.
func (f *flight) give(n *node) {
	f.out++
	f.asked |= 1 << n.i
}

// missing returns the masters that were asked and of which nothing is known yet.
func (f *flight) missing() uint64 { return f.asked &^ (f.yes | f.failed) }

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

// known counts the masters that have answered, or had before and were not asked.
func (f *flight) known(d *shared) int { return f.answered() + len(d.nodes) - bits.OnesCount64(f.asked) }

// enough reports whether a majority has answered, or cannot any more.
func (f *flight) enough(d *shared) bool {
	return f.known(d) >= d.quorum || f.silent() > len(d.nodes)-d.quorum
}

// coming counts the masters that were asked, have not answered and are not silent.
func (f *flight) coming(d *shared) (n int) {
	for _, node := range d.nodes {
		if f.missing()&(1<<node.i) != 0 && !node.silent() {
			n++
		}
	}
	return n
}

// grace bounds how long a call waits for the last masters after a majority has answered. Whoever joins a line afterwards
// then comes behind it everywhere, and need not step back.
const grace = 20 * time.Millisecond

// half is how long a call waits for the others as a rule: half the time that a majority took, by now. So one that is slow or
// silent cannot make the call much longer, however fast or slow the others are.
func (f *flight) half() time.Duration { return time.Since(f.since) / 2 }

// lateness is when that is over.
func lateness(patience time.Duration) time.Time { return time.Now().Add(min(grace, patience)) }

// touched reports whether a master may have carried out an order: it has answered, its answer is lost, or it has yet to come.
func (f *flight) touched() bool { return f.sent || f.out > 0 }

// unavailable says that too few masters have answered, and what the first of the others said. Only where nothing was done
// anywhere, and nothing is under way, does the error match [driver.ErrNotSent] or [driver.ErrRefused]: the core forgets a
// claim that was not sent, and an order that arrives after that would put it into a line for good.
func (d *shared) unavailable(f *flight) error {
	err := membership.TooFew(len(d.nodes), f.answered(), bits.OnesCount64(f.refused&^f.yes), f.refusals, f.err)
	if f.touched() {
		return errors.New(err.Error())
	}
	return err
}

// refusing is the error of a call that so many masters refuse for good that the others are no majority, or nil. It matches
// [driver.ErrRefused], also where one of the others has done something, which the caller then takes back.
func (d *shared) refusing(f *flight) error {
	if bits.OnesCount64(f.finally&^f.yes) <= len(d.nodes)-d.quorum {
		return nil
	}
	return membership.TooFew(len(d.nodes), f.answered(), bits.OnesCount64(f.refused&^f.yes), f.refusals, nil)
}

// moment is how long those get that have not answered a question to all masters when a majority has.
const moment = 5 * grace
