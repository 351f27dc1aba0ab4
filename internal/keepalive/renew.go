package keepalive

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// Renewal is what came of a renewal.
type Renewal struct {
	Claims   int           // in line, held or waiting
	Leases   int           // that are held by these
	Took     time.Duration // until the store answered
	Slack    time.Duration // that the lease with the least had left of its trust when it did
	Trust    time.Duration // that a lease has from then on, as far as this session goes
	Failures int           // renewals without an answer before this one, where it has ended a row of them
	Err      error
}

// beat is the heartbeat: it renews while there are claims, and closes a session that had none for
// Config.Idle.
func (s *Session) beat() {
	limit, asks := s.beforeBeat()
	if limit == 0 {
		return
	}
	started := s.keeper.Clock.Now()
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	err := s.Renew(ctx)
	cancel()
	s.afterBeat(started, asks, err)
}

// beforeBeat returns how long a renewal may last, or 0 where there is nothing to renew, and whether
// it has anything to ask.
func (s *Session) beforeBeat() (limit time.Duration, asks bool) {
	k := s.keeper
	now := k.Clock.NowSynced() // before the deadline, which after a suspension would lie in the past
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.Over {
		return 0, false
	}
	if len(s.claims) == 0 {
		s.resting = true
		if left := k.Idle - now.Sub(s.idleSince); left > 0 {
			s.heartbeat.Reset(left)
		} else {
			s.close()
		}
		return 0, false
	}
	if asks = s.hasAnswered(); asks {
		k.Silence.Begin(now)
	}
	s.asking = true
	// A call must not last longer than what it renews. Where that has passed, or nobody holds
	// anything, a renewal is as good as a new beginning.
	end := min(now.Add(s.Valid), s.check(now).End)
	return max(TryTimeout(end.Sub(now), s.Valid-s.maxGrace), time.Millisecond), asks
}

// afterBeat says when the next beat comes.
func (s *Session) afterBeat(started clock.Instant, asks bool, err error) {
	k := s.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	s.asking = false
	if asks {
		defer k.Silence.End()
	}
	if s.Over {
		return
	}
	next := s.period() - k.Clock.Since(started)
	if err != nil {
		s.failures++
		k.Silence.Failed(k.Clock.Now(), err)
		if s.abandon(); s.Over {
			return
		}
		next = Backoff(s.failures)
	}
	s.heartbeat.Reset(max(next, time.Millisecond))
}

// TryTimeout is how long a call may last of which one without an answer must not be the last: half
// of the time that is left, so that another one fits, which has the rest.
func TryTimeout(left, whole time.Duration) time.Duration {
	if left > whole/2 {
		return left / 2
	}
	return left
}

// Renew asks the store once, and acts on its answer. The mutex is not held.
func (s *Session) Renew(ctx context.Context) error {
	k := s.keeper
	k.mu.Lock()
	asks := s.hasAnswered()
	k.mu.Unlock()
	started := k.Clock.NowSynced()
	r, err := s.Driver.Renew(ctx)
	of := s.renewalAnswered(asks, started, k.Clock.Now(), r, err)
	k.Renewed(of)
	return of.Err
}

// renewalAnswered acts on the answer to a renewal that began at started.
func (s *Session) renewalAnswered(asks bool, started, now clock.Instant, r driver.Renewal, err error) Renewal {
	k := s.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	left := s.check(now) // before the answer moves their end
	of := Renewal{Claims: len(s.claims), Leases: left.Leases, Took: now.Sub(started)}
	if left.Leases > 0 {
		of.Slack = left.Trust.Sub(now)
	}
	switch {
	case s.Over:
		err = driver.ErrSessionLost
	case errors.Is(err, driver.ErrSessionLost):
		s.End(err)
	case err == nil:
		if asks {
			of.Failures, s.failures = s.failures, 0
			k.Silence.Answered(now)
		}
		if started >= s.Renewed { // else another has overtaken it, whose Valid counts from its own start
			s.Renewed, s.Valid = started, r.Valid
		}
		for _, l := range r.Lost {
			s.lost(l)
		}
		s.check(k.Clock.Now())
	}
	of.Trust, of.Err = s.Renewed.Add(s.Valid-s.maxGrace).Sub(k.Clock.Now()), err
	return of
}

// hasAnswered reports whether a renewal has anything to ask the store for. One that has not, since
// no claim was answered yet, succeeds whatever the store does, and proves nothing of it.
func (s *Session) hasAnswered() bool {
	for _, c := range s.claims {
		if _, answered := c.Status(); answered {
			return true
		}
	}
	return false
}
