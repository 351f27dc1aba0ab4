package redlock

import (
	"errors"
	"math/bits"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// tally counts what masters have answered to one question. Masters are bits of a number, by their
// index.
type tally struct {
	out      int     // orders without an answer
	asked    uint64  // which have got an order
	yes      uint64  // which have answered
	failed   uint64  // which have not, or with an error
	refused  uint64  // which of those that failed have answered that they do not do it
	finally  uint64  // which of these will not do it however often they are asked
	refusals []error // what these said
	err      error   // what the first of the others said that failed
	sent     bool    // one of those that failed may have been carried out, or was answered
}

// give counts an order for a master.
func (t *tally) give(n *node) {
	t.out++
	t.asked |= 1 << n.i
}

// answer counts a master's answer, or that there was none.
func (t *tally) answer(n *node, err error) {
	t.out--
	if err == nil {
		t.yes |= 1 << n.i
		t.sent = true
		return
	}
	t.failed |= 1 << n.i
	if errors.Is(err, driver.ErrRefused) || redisconn.Is(err, "NOVOTE") {
		t.refused |= 1 << n.i
	}
	t.sent = t.sent || uncertain(err)
	if final(err) && t.finally&(1<<n.i) == 0 {
		t.finally |= 1 << n.i
		t.refusals = append(t.refusals, err)
	} else if t.err == nil {
		t.err = err
	}
}

// missing returns the masters that were asked and of which nothing is known yet.
func (t *tally) missing() uint64 { return t.asked &^ (t.yes | t.failed) }

// misses reports whether a master is one of these.
func (t *tally) misses(n *node) bool { return t.missing()&(1<<n.i) != 0 }

// answered is how many masters have answered, silent how many have not although they were asked.
func (t *tally) answered() int { return bits.OnesCount64(t.yes) }
func (t *tally) silent() int   { return bits.OnesCount64(t.failed &^ t.yes) }

// known counts the masters that have answered, or had before and were not asked.
func (t *tally) known(d *shared) int {
	return t.answered() + len(d.nodes) - bits.OnesCount64(t.asked)
}

// enough reports whether a majority has answered, or cannot any more.
func (t *tally) enough(d *shared) bool {
	return t.known(d) >= d.quorum || t.silent() > len(d.nodes)-d.quorum
}

// coming counts the masters that were asked, have not answered and are not silent.
func (t *tally) coming(d *shared) (n int) {
	for _, node := range d.nodes {
		if t.misses(node) && !node.silent() {
			n++
		}
	}
	return n
}

// touched reports whether a master may have carried out an order: it has answered, its answer is
// lost, or it has yet to come.
func (t *tally) touched() bool { return t.sent || t.out > 0 }

// unavailable says that too few masters have answered, and what the first of the others said. Only
// where nothing was done anywhere, and nothing is under way, does the error match
// [driver.ErrNotSent] or [driver.ErrRefused]: the core forgets a claim that was not sent, and an
// order that arrives after that would put it into a line for good.
func (t *tally) unavailable(d *shared) error {
	err := membership.TooFew(len(d.nodes), t.answered(), bits.OnesCount64(t.refused&^t.yes), t.refusals, t.err)
	if t.touched() {
		return errors.New(err.Error())
	}
	return err
}

// refusing is the error of a call that so many masters refuse for good that the others are no
// majority, or nil. It matches [driver.ErrRefused], also where one of the others has done
// something, which the caller then takes back.
func (t *tally) refusing(d *shared) error {
	if bits.OnesCount64(t.finally&^t.yes) <= len(d.nodes)-d.quorum {
		return nil
	}
	return membership.TooFew(len(d.nodes), t.answered(), bits.OnesCount64(t.refused&^t.yes), t.refusals, nil)
}
