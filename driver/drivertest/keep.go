package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// keep renews the session in the background, as the core does, until the trial or unkeep ends it.
func (a *actor) keep() *actor {
	ctx, stop := context.WithCancel(a.w.ctx)
	a.stopKeeping = stop
	a.w.start(func() {
		for from := a.asked; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(from.Add(a.pace()))):
			}
			a.overdue()
			from = time.Now()
			within, cancel := context.WithTimeout(ctx, 3*a.pace())
			r, err := call(within, a, a.s.Renew, nil)
			if err != nil && within.Err() != nil {
				err = unanswered{err}
			}
			cancel()
			if ctx.Err() != nil {
				return
			}
			if err != nil || len(r.Lost) > 0 {
				a.w.story.add(time.Now(), a.name, "Renew in the background → %s", a.renewal(r, err))
			}
			a.note(from, r, err)
		}
	})
	return a
}

// pace is how long after the start of a Renew the next one is due.
func (a *actor) pace() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.given / 3
}

// renewIfDue renews a session that nobody keeps, as often as keep would.
func (a *actor) renewIfDue() {
	a.mu.Lock()
	due := a.until.Add(a.given/3 - a.given)
	a.mu.Unlock()
	if !time.Now().Before(due) {
		a.renew()
	}
}

// unkeep ends keep.
func (a *actor) unkeep() {
	if a.stopKeeping != nil {
		a.stopKeeping()
	}
}

// note remembers the answer to a Renew that was called at from.
func (a *actor) note(from time.Time, r driver.Renewal, err error) {
	if err == nil {
		a.overdue() // when it was answered
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil && r.Valid > 0:
		a.until, a.given, a.refused = from.Add(r.Valid), r.Valid, false
	case !errors.As(err, new(unanswered)) && time.Now().Before(a.until):
		a.refused = true
	}
	for _, l := range r.Lost {
		a.lost[l.ID] = l.Err
	}
	if errors.Is(err, driver.ErrSessionLost) {
		a.sessionLost = true
	}
}

// hears notes what the session's channel of losses says until the trial ends.
func (a *actor) hears() {
	_, lost := a.channels()
	if lost == nil {
		return
	}
	a.w.start(func() {
		for {
			select {
			case <-a.w.ctx.Done():
				return
			case l, open := <-lost:
				if !open {
					return
				}
				a.w.story.add(time.Now(), a.name, "is told: %s", a.w.story.loss(l))
				a.mu.Lock()
				a.lost[l.ID] = l.Err
				a.mu.Unlock()
			}
		}
	})
}

// knowsLost reports whether a Renew, or the channel where somebody hears it, has said that c is gone, alone or with its session.
func (a *actor) knowsLost(c driver.Claim) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, told := a.lost[c.ID]
	return told || a.sessionLost
}

// whyLost returns the reason with which c was said to be lost, also where that is none.
func (a *actor) whyLost(c driver.Claim) (told bool, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	why, told = a.lost[c.ID]
	return told, why
}

func (a *actor) renewal(r driver.Renewal, err error) string {
	if err != nil {
		return "error: " + a.w.story.err(err)
	}
	text := "valid " + r.Valid.String()
	for _, l := range r.Lost {
		text += ", " + a.w.story.loss(l)
	}
	return text
}
