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

// trust is the timer that ends leases. It fires no later than the first hold ends.
type trust struct {
	timer *time.Timer
	at    clock.Instant // when it fires; 0 when it does not run
	first clock.Instant // no hold ends before it; 0 where there is none
}

// Guard makes sure that the trust timer fires for a new hold, which ends at until at the latest.
// The mutex is held.
func (s *Session) Guard(until clock.Instant, grace time.Duration) {
	s.maxGrace = max(s.maxGrace, grace)
	if s.trust.first == 0 || until.Before(s.trust.first) {
		s.trust.first = until
	}
	if s.trust.at == 0 || until.Before(s.trust.at) {
		s.sleep(s.keeper.Clock.Now())
	}
}

// sleep sets the trust timer.
func (s *Session) sleep(now clock.Instant) {
	d := min(s.trust.first.Sub(now), LongestSleep)
	s.trust.at = now.Add(d)
	s.trust.timer.Reset(max(d, 0))
}

// expire is the trust timer: it ends the leases whose time has come, whatever the store is doing.
func (s *Session) expire() {
	now := s.keeper.Clock.Look()
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	if !s.over {
		s.check(now)
	}
}

// check ends what is over at now, sets the trust timer to the first end of a hold there is, or
// stops it, and returns that end.
func (s *Session) check(now clock.Instant) (first clock.Instant) {
	for _, c := range s.claims {
		if end := c.Check(now).End; end != 0 && (first == 0 || end.Before(first)) {
			first = end
		}
	}
	s.trust.first = first
	if first == 0 {
		s.trust.timer.Stop()
		s.trust.at = 0
		return 0
	}
	s.sleep(now)
	return first
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
