package keepalive

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
)

// LongestSleep is how long the trust timer sleeps at a stretch. Go's timers stand still while the
// machine is suspended; after it, trust that has run out is noticed within this time.
const LongestSleep = time.Second

// trust is the timer that ends leases. It fires no later than the first hold ends: Guard brings it
// forward for a new hold, and check sets it anew, from all holds, after each answer to a renewal
// and each time that it fires. When a hold is released the timer stays as it is, and
// fires once for nothing.
type trust struct {
	timer *time.Timer
	at    clock.Instant // when it fires; Never when it does not run
}

// Guard makes sure that the trust timer fires for a new hold, which ends at until at the latest.
// The mutex is held.
func (s *Session) Guard(until clock.Instant, grace time.Duration) {
	s.maxGrace = max(s.maxGrace, grace)
	if until < s.trust.at {
		s.sleep(s.keeper.Clock.Now(), until)
	}
}

// sleep sets the trust timer to until, or to LongestSleep from now.
func (s *Session) sleep(now, until clock.Instant) {
	s.trust.at = min(until, now.Add(LongestSleep))
	s.trust.timer.Reset(max(s.trust.at.Sub(now), 0))
}

// expire is the trust timer: it ends the leases whose time has come, whatever the store is doing.
func (s *Session) expire() {
	now := s.keeper.Clock.NowSynced()
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	if !s.Over {
		s.check(now)
	}
}

// check ends what is over at now, sets the trust timer to the first end of a hold that is left, or
// stops it, and returns what is left of all claims together.
func (s *Session) check(now clock.Instant) Left {
	left := Left{End: clock.Never, Trust: clock.Never}
	for _, c := range s.claims {
		of := c.Check(now)
		left.End, left.Trust = min(left.End, of.End), min(left.Trust, of.Trust)
		left.Leases += of.Leases
	}
	switch {
	case s.Over:
	case left.End == clock.Never:
		s.trust.timer.Stop()
		s.trust.at = clock.Never
	default:
		s.sleep(now, left.End)
	}
	return left
}

// NotRenewed is why a lease's time ran out: the store failed or has not answered yet, or else this
// process was stopped and did not come to ask it. The mutex is held.
func (s *Session) NotRenewed() error {
	err := s.keeper.Silence.Err()
	if err == nil && !s.asking {
		return fault.ErrStalled
	}
	return fmt.Errorf("not renewed in time: %w", fault.Unavailable(err))
}

// StopTimer does what a stop of the process does to the trust timer: it does not come. Tests call
// it, with the mutex held.
func (s *Session) StopTimer() { s.trust.timer.Stop() }
