package redislock

import "context"

// covered asks for the state of c, and again as long as a renewal began meanwhile that did not know that c is held.
//
//	Acquire        ├──────────── sent, and held there ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ answered ┤
//	Renew                                        ├── sent ── answered ──┤
//	c at the server            ├───────────── its TTL ─────────────┤
//	what is trusted                              ├───────────── its TTL ─────────────┤
//
// A renewal that is answered counts for all claims of the session. One whose Acquire is under way is not among those that
// it renews, so it would be trusted for longer than the server keeps it. To ask for it again renews it.
func (s *session) covered(ctx context.Context, c *claim, ask func(context.Context) error) error {
	for {
		s.mu.Lock()
		before := s.renewals
		s.mu.Unlock()
		if err := ask(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		missed := c.state == held && !c.leaving && s.renewals != before
		s.mu.Unlock()
		if !missed {
			return nil
		}
		ask = func(ctx context.Context) error { return s.enter(ctx, c) }
	}
}
