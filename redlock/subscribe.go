package redlock

import (
	"context"
	"time"
)

// subscribeAll subscribes at every master for a claim that may wait, and says where that failed.
func (s *session) subscribeAll(ctx context.Context, c *claim) []error {
	errs := make([]error, len(s.d.nodes))
	if !c.Queue {
		return errs
	}
	s.d.audience.Add(c.ID, s)
	subs := make([]*subscription, len(s.d.nodes))
	// look reports how many masters that may vote have confirmed, and which others are worth
	// waiting for.
	look := func() (ready int, missing uint64) {
		for i, n := range s.d.nodes {
			e := n.subscribe() // again, where it has failed meanwhile
			subs[i], errs[i] = e, e.confirmed(ctx, n)
			switch {
			case errs[i] == nil && n.member.Votes():
				ready++
			case !e.Resolved() && e.first && !n.unresponsive():
				missing |= 1 << i
			}
		}
		return ready, missing
	}
	if ready, missing := look(); ready < s.d.quorum || missing != 0 {
		s.awaitSubscriptions(ctx, subs, look)
	}
	return errs
}

// awaitSubscriptions waits until a majority has confirmed. It waits for the others as linger does:
// until they are late. Where one of them confirms then, the claims that wait here join its line.
func (s *session) awaitSubscriptions(ctx context.Context, subs []*subscription, look func() (ready int, missing uint64)) {
	ctx, cancel := context.WithTimeout(ctx, s.d.options.NodeTimeout)
	defer cancel()
	news := make(chan struct{}, 1)
	watched := make([]*subscription, len(subs))
	var late time.Time
	for since := time.Now(); ctx.Err() == nil; {
		ready, missing := look()
		limit := time.Now().Add(stragglerWait / 4) // what has failed is made again, and who has no vote may get it
		if ready >= s.d.quorum {
			if late.IsZero() {
				late = lateness(time.Since(since) / 2)
			}
			if limit = late; missing == 0 {
				return
			}
			if !time.Now().Before(late) {
				for _, n := range s.d.nodes {
					if missing&(1<<n.i) != 0 {
						n.markLate()
					}
				}
				return
			}
		}
		for i, e := range subs {
			if e != watched[i] && !e.Resolved() {
				watched[i] = e
				go func() {
					_ = e.Await(ctx)
					select {
					case news <- struct{}{}:
					default:
					}
				}()
			}
		}
		timer := time.NewTimer(time.Until(limit))
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// subscribeHolders subscribes at every master if something is held.
func (d *shared) subscribeHolders() {
	sessions, closed := d.sessions.All(), d.sessions.Closed()
	for _, s := range sessions {
		s.mu.Lock()
		holds, _ := s.live()
		s.mu.Unlock()
		if closed || len(holds) == 0 {
			continue
		}
		made := false
		for _, n := range d.nodes {
			before := n.hasSubscription()
			if e := n.subscribe(); !before {
				ctx, cancel := context.WithTimeout(d.ctx, d.options.NodeTimeout)
				made = e.Await(ctx) == nil || made
				cancel()
			}
		}
		if made {
			s.Hurry()
		}
	}
}
