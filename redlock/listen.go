package redlock

import (
	"context"
	"time"
)

// listening subscribes at every master for a claim that may wait, and says where that failed.
func (s *session) listening(ctx context.Context, c *claim) []error {
	errs := make([]error, len(s.d.nodes))
	if !c.Queue {
		return errs
	}
	s.d.audience.Add(c.ID, s)
	ears := make([]*ear, len(s.d.nodes))
	// look reports how many masters that may vote have confirmed, and which others are worth waiting for.
	look := func() (ready int, missing uint64) {
		for i, n := range s.d.nodes {
			e := n.listen() // again, where it has failed meanwhile
			ears[i], errs[i] = e, e.confirmed(ctx, n)
			switch {
			case errs[i] == nil && n.member.Votes():
				ready++
			case !e.Resolved() && e.first && !n.ailing():
				missing |= 1 << i
			}
		}
		return ready, missing
	}
	if ready, missing := look(); ready < s.d.quorum || missing != 0 {
		s.awaitEars(ctx, ears, look)
	}
	return errs
}

// awaitEars waits until a majority has confirmed. It waits for the others as linger does: until they are late. Where one of
// them confirms then, the claims that wait here join its line.
func (s *session) awaitEars(ctx context.Context, ears []*ear, look func() (ready int, missing uint64)) {
	ctx, cancel := context.WithTimeout(ctx, s.d.options.NodeTimeout)
	defer cancel()
	news := make(chan struct{}, 1)
	watched := make([]*ear, len(ears))
	var late time.Time
	for since := time.Now(); ctx.Err() == nil; {
		ready, missing := look()
		limit := time.Now().Add(grace / 4) // what has failed is made again, and who has no vote may get it
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
						n.isLate()
					}
				}
				return
			}
		}
		for i, e := range ears {
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

// listenForHolders subscribes at every master if something is held.
func (d *shared) listenForHolders() {
	sessions, closed := d.sessions.All(), d.sessions.Closed()
	for _, s := range sessions {
		s.mu.Lock()
		holds, _ := s.standing()
		s.mu.Unlock()
		if closed || len(holds) == 0 {
			continue
		}
		made := false
		for _, n := range d.nodes {
			before := n.hears()
			if e := n.listen(); !before {
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
