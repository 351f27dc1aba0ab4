package interlock

import "github.com/interlock-go/interlock/internal/clock"

// silence is what a pool knows of a store that does not answer. It begins with the first request that goes unanswered, not
// with the last answer: from a store that nobody asks no answer is missing. Guarded by pool.mu.
type silence struct {
	asked int           // requests under way that must be answered
	err   error         // what the store failed with since its last answer
	since clock.Instant // while it lasts: when the first request was sent that is unanswered, or has failed since the last answer
}

// lasts reports whether an answer is missing.
func (s *silence) lasts() bool { return s.asked > 0 || s.err != nil }

// begin notes a request that is about to be sent.
func (s *silence) begin(now clock.Instant) {
	if !s.lasts() {
		s.since = now
	}
	s.asked++
}

// end notes that it is over, once what became of it is noted. One that its caller gave up says nothing of the store.
func (s *silence) end() { s.asked-- }

// failed notes that the store failed with err.
func (s *silence) failed(now clock.Instant, err error) {
	if !s.lasts() {
		s.since = now
	}
	s.err = err
}

// answered notes that the store is there. It may be silent from now on for what is still under way.
func (p *pool) answered(now clock.Instant) { p.silence.err, p.silence.since = nil, now }

// trouble notes that the store failed, and turns away the waiters who have borne its silence for Options.Patience. It
// looks at the waiters only when somebody's patience may have ended: ends only move on, by answers and by newcomers.
func (p *pool) trouble(err error) {
	now := p.client.clock.Now()
	p.silence.failed(now, err)
	if now.Before(p.nextEnd) {
		return
	}
	p.nextEnd = now.Add(p.client.opts.Patience)
	for _, l := range p.lines {
		l.turnAway(unavailable(err), func(w *waiter) bool {
			end := p.patience(w, now)
			if now.Before(end) {
				p.nextEnd = min(p.nextEnd, end)
				return false
			}
			return true
		})
	}
}

// patience is the moment at which w will have borne the store's silence for long enough; it begins now if it has not yet.
func (p *pool) patience(w *waiter, now clock.Instant) clock.Instant {
	since := now
	if p.silence.lasts() {
		since = p.silence.since
	}
	return max(w.since, since).Add(p.client.opts.Patience)
}

// endOfPatience is the first moment after now at which the patience of a waiter ends, or limit if that is earlier.
func (p *pool) endOfPatience(now, limit clock.Instant) clock.Instant {
	if p.waiting == 0 {
		return limit
	}
	for _, l := range p.lines {
		for w := l.waiters.first; w != nil; w = w.next {
			if end := p.patience(w, now); now.Before(end) && end.Before(limit) {
				limit = end
			}
		}
	}
	return limit
}
