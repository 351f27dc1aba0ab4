package interlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
)

// longestSleep is how long the trust timer sleeps at a stretch. Go's timers stand still while the machine is
// suspended; after it, trust that has run out is noticed within this time.
const longestSleep = time.Second

// guard makes sure that the trust timer fires for a new hold.
func (s *session) guard(h *hold) {
	s.maxGrace = max(s.maxGrace, h.grace)
	u := h.until()
	if s.earliest == 0 || u.Before(s.earliest) {
		s.earliest = u
	}
	if s.trustAt == 0 || u.Before(s.trustAt) {
		s.sleepUntil(u)
	}
}

// armTrust sets the trust timer to the first end of a hold there is, or stops it.
func (s *session) armTrust() {
	first := clock.Instant(0)
	for _, c := range s.claims {
		for _, h := range c.holds {
			if u := h.until(); h.lost == nil && (first == 0 || u.Before(first)) {
				first = u
			}
		}
	}
	s.earliest = first
	if first == 0 {
		s.trust.Stop()
		s.trustAt = 0
		return
	}
	s.sleepUntil(first)
}

func (s *session) sleepUntil(u clock.Instant) {
	now := s.pool.client.clock.Now()
	d := min(u.Sub(now), longestSleep)
	s.trustAt = now.Add(d)
	s.trust.Reset(max(d, 0))
}

var errStalled = errors.New("not renewed in time, although the store did not fail: this process may have been stopped")

// notRenewed is why a lease's time ran out: the store failed or has not answered yet, or else this process was stopped
// and did not come to ask it.
func (s *session) notRenewed() error {
	if s.pool.silence.err == nil && !s.asking {
		return errStalled
	}
	return fmt.Errorf("not renewed in time: %w", unavailable(s.pool.silence.err))
}

// check is the trust timer: it ends the leases whose time has come, whatever the store is doing.
func (s *session) check() {
	now := s.pool.client.clock.Look()
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.over {
		return
	}
	s.watch()
	if now.Before(s.earliest) {
		s.sleepUntil(s.earliest)
		return
	}
	for _, c := range s.claims {
		for _, h := range c.holds {
			if h.lost == nil && !now.Before(h.until()) {
				s.pool.lose(h, h.over(now))
			}
		}
	}
	s.armTrust()
}
