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
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(a.valid / 3):
			}
			a.overdue()
			from := time.Now()
			within, cancel := context.WithTimeout(ctx, a.valid)
			r, err := call(within, a, a.s.Renew, nil)
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
	if err == nil {
		a.until = from.Add(r.Valid)
	}
	for _, id := range r.Lost {
		a.lost[id] = true
	}
	if errors.Is(err, driver.ErrSessionLost) {
		a.sessionLost = true
	}
}

// knowsLost reports whether a Renew has said that c is gone, alone or with its session.
func (a *actor) knowsLost(c driver.Claim) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lost[c.ID] || a.sessionLost
}

func (a *actor) renewal(r driver.Renewal, err error) string {
	if err != nil {
		return "error: " + a.w.story.err(err)
	}
	text := "valid " + r.Valid.String()
	for _, id := range r.Lost {
		text += ", lost " + a.w.story.label(id)
	}
	return text
}
