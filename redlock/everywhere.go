package redlock

import (
	"context"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/redisconn"
)

// everywhere gives every master an order and waits for the answers: of all, or, when a majority has
// answered, of those that are neither late nor silent, for a moment. One that is late here is
// waited for again when it has answered within grace. While undecided says, of how many answers are
// missing, that they matter, all are waited for; nil says never.
func (d *Driver) everywhere(
	ctx context.Context, call func(*node) (redisconn.Call, bool), answer func(*node, any) error, undecided func(missing int) bool,
) (*tally, error) {
	var ended atomic.Bool
	t, since, replies := &tally{}, time.Now(), make(chan reply, len(d.nodes))
	for _, n := range d.nodes {
		c, wanted := call(n)
		if !wanted {
			continue
		}
		t.give(n)
		n.give(order{call: c, since: since, until: since.Add(d.options.NodeTimeout), done: func(n *node, _ *order, v any, err error) {
			r := reply{n, v, err, time.Since(since) < stragglerWait}
			if replies <- r; ended.Load() {
				r.heard()
			}
		}})
	}
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	for majority := false; d.matters(t, undecided); {
		select {
		case r := <-replies:
			r.heard()
			if r.err == nil {
				r.err = answer(r.n, r.v)
			}
			t.answer(r.n, r.err)
			if !majority && t.answered() >= d.quorum {
				majority = true
				late.Reset(laggardWait)
			}
		case <-late.C:
			for _, n := range d.nodes {
				if t.misses(n) {
					n.markLate()
				}
			}
		case <-ctx.Done():
			ended.Store(true)
			return &tally{}, ctx.Err()
		}
	}
	ended.Store(true)
	for len(replies) > 0 { // what they say is not looked at, so their masters count as those that have said nothing
		r := <-replies
		r.heard()
	}
	return t, nil
}

// reply is what a master has answered to a question to all.
type reply struct {
	n      *node
	v      any
	err    error
	inTime bool
}

// heard notes that a master is waited for again, if it has answered in time.
func (r reply) heard() {
	if r.err == nil && r.inTime {
		r.n.late.Store(false)
	}
}

// matters reports whether everywhere waits for an answer that is missing.
func (d *Driver) matters(t *tally, undecided func(missing int) bool) bool {
	all := t.answered() < d.quorum || undecided != nil && undecided(bits.OnesCount64(t.missing()))
	for _, n := range d.nodes {
		if t.misses(n) && (all || !n.unresponsive()) {
			return true
		}
	}
	return false
}
