package local

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
)

// patience is the timer that fails waiters after the store has been silent for long enough. It
// fires no later than the first of them has, and runs on when they have left: to set it anew for
// each would cost more than to look once in a while.
type patience struct {
	timer *time.Timer
	at    clock.Instant // when it fires; Never when it does not run
}

// patienceOf is for how long w will bear the store's silence, which begins now if it has not yet. A
// try bears less, silence or not: it stands behind others that ask.
func (p *Pool) patienceOf(w *waiter, now clock.Instant) time.Duration {
	left := p.Patience - time.Duration(now-max(w.since, p.silence.Since(now)))
	if w.Try && !w.acquires {
		left = min(left, tryPatience-time.Duration(now-w.since))
	}
	return left
}

// armPatience makes sure that the timer fires for w, which stands in its line at now.
func (p *Pool) armPatience(w *waiter, now clock.Instant) {
	if end := now.Add(p.patienceOf(w, now)); end < p.patience.at {
		p.setPatience(end, now)
	}
}

func (p *Pool) setPatience(at, now clock.Instant) {
	p.patience.at = at
	if p.patience.timer == nil {
		p.patience.timer = time.AfterFunc(max(at.Sub(now), 0), p.onPatience)
		return
	}
	p.patience.timer.Reset(max(at.Sub(now), 0))
}

// onPatience is called by the timer. It fails the waiters whose patience is over, and sets the
// timer for the next of the others.
func (p *Pool) onPatience() {
	now := p.Clock.NowSynced()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.patience.at = clock.Never
	next, waiting := p.Patience, 0
	for _, l := range p.lines {
		over := false
		for w := l.waiters.first; w != nil; {
			after := w.next
			if left := p.patienceOf(w, now); left > 0 {
				next = min(next, left)
				waiting++
			} else {
				why, in := fault.Unavailable(p.silence.Err()), p.Patience
				if w.Try {
					why, in = l.refusal(), tryPatience
				}
				over = true
				l.waiters.remove(w)
				w.fail(silent(why, in.String()))
			}
			w = after
		}
		if over {
			l.settle()
		}
	}
	if waiting > 0 {
		p.setPatience(now.Add(next), now)
	}
}

// silent adds to the error of a wait for how long there was no answer, where it has no better
// reason.
func silent(why error, in string) error {
	if why == fault.ErrUnavailable { //nolint:errorlint // the very one, which has no reason yet
		return fmt.Errorf("%w: no answer in %s", why, in)
	}
	return why
}
