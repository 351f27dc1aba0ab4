package local

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
)

// patience is the timer that fails waiters who have borne the store's silence for long enough. It
// fires no later than the first of them has, and runs on when they have left: to set it anew for
// each would cost more than to look once in a while.
type patience struct {
	timer *time.Timer
	at    clock.Instant // when it fires; Never when it does not run
}

// patienceOf is the moment at which w will have borne the store's silence for long enough; it
// begins now if it has not yet. A try bears less, silence or not: it stands behind others who ask.
func (p *Pool) patienceOf(w *waiter, now clock.Instant) clock.Instant {
	end := max(w.since, p.silence.Since(now)).Add(p.Patience)
	if w.Try && !w.asks {
		end = min(end, w.since.Add(tryPatience))
	}
	return end
}

// expectPatience makes sure that the timer fires for w, who has not left its line at now.
func (p *Pool) expectPatience(w *waiter, now clock.Instant) {
	if end := p.patienceOf(w, now); end < p.patience.at {
		p.setPatience(end, now)
	}
}

func (p *Pool) setPatience(at, now clock.Instant) {
	p.patience.at = at
	if p.patience.timer == nil {
		p.patience.timer = time.AfterFunc(max(at.Sub(now), 0), p.impatient)
		return
	}
	p.patience.timer.Reset(max(at.Sub(now), 0))
}

// impatient is the timer.
func (p *Pool) impatient() {
	now := p.Clock.Look()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.patience.at = clock.Never
	next, waiting := now.Add(p.Patience), 0
	for _, l := range p.lines {
		over := false
		for w := l.waiters.first; w != nil; {
			after := w.next
			if end := p.patienceOf(w, now); now < end {
				next = min(next, end)
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
		p.setPatience(next, now)
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
