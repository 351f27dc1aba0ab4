package interlock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// turn is one of the holds of a lease.
type turn struct {
	name string
	pool *pool
	hold *hold
	kind driver.Kind // of the lease: by re-entry, one for reading can share an exclusive hold
}

// begin puts a lease on the hold, and reports whether the hold is good for one. Where the lease re-enters, the one that is
// there already has shown that.
func (t turn) begin(l *Lease) (fresh bool) {
	p, h := t.pool, t.hold
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.leases == nil {
		h.leases = h.single[:0]
	}
	h.leases = append(h.leases, l.lease)
	h.begin(l.since)
	if p == l.turns[0].pool {
		p.young[l] = struct{}{}
	}
	fresh = h.sharers > 1 || h.lost == nil && h.claim.until(h.grace).Sub(l.since) >= h.grace
	if fresh && h.lost != nil {
		l.end(h.lost)
	}
	return fresh
}

// releaseAll releases the turns of l side by side: a store that does not answer costs the time of one.
func releaseAll(l *Lease, now clock.Instant) error {
	errs := make([]error, len(l.turns))
	var releases sync.WaitGroup
	for i, t := range l.turns {
		releases.Go(func() {
			t.pool.mu.Lock()
			errs[i] = t.release(l, now)
		})
	}
	releases.Wait()
	return errors.Join(errs...)
}

// giveBack takes the lease l off turns that nobody will use, side by side.
func giveBack(ctx context.Context, turns []turn, l *Lease) {
	var declines sync.WaitGroup
	for _, t := range turns {
		declines.Go(func() { t.decline(l) })
	}
	if ctx.Err() == nil { // else the caller waits no longer
		declines.Wait()
	}
}

// look ends the leases of a hold whose time is over although the trust timer has not come yet. The pool's mutex is held.
func (t turn) look(now clock.Instant) {
	if h := t.hold; h.lost == nil && !h.left && !now.Before(h.until()) {
		t.pool.lose(h, h.over(now))
	}
}

func (t turn) fence() uint64 {
	if t.kind == driver.Read {
		return 0
	}
	return t.hold.fence
}

// A turn ends in one of two ways. A lease on it is released: then a MinHold binds. Or nobody was ever given one, because
// its Lock failed: then the turn leaves no trace.

// release takes a lease off the hold, which leaves the line with its last. The pool's mutex is held; it is not when release
// returns.
func (t turn) release(l *Lease, now clock.Instant) error {
	t.hold.used = true
	return t.quit(l, now)
}

// decline takes a lease that nobody was given off the hold, or none yet.
func (t turn) decline(l *Lease) {
	t.pool.mu.Lock()
	_ = t.quit(l, t.pool.client.clock.Now())
}

// quit is what both have in common. The pool's mutex is held; it is not when quit returns.
func (t turn) quit(l *Lease, now clock.Instant) error {
	p, h := t.pool, t.hold
	if l != nil {
		delete(p.young, l)
		if i := slices.Index(h.leases, l.lease); i >= 0 {
			h.leases = slices.Delete(h.leases, i, i+1)
		}
	}
	if h.sharers--; h.sharers > 0 {
		p.mu.Unlock()
		return nil
	}
	return p.vacate(h, now)
}
