package rowline

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Claim is one claim of a session. Its session's mutex guards everything here.
type Claim struct {
	driver.Claim
	s     *Session
	state State
	grant driver.Grant

	void   time.Time       // when the last request without an answer is void; zero where there is none
	asked  Ear             // that has heard since before it last asked; nil to ask again
	again  time.Time       // when it asks by itself; zero for never
	change sessions.Signal // wakes its Wait

	sessions.Departure
}

// check refuses a claim that cannot be kept.
func (d *Sessions) check(c driver.Claim) error {
	switch {
	case !validID(c.ID):
		return fmt.Errorf("%s: claim ID of %d bytes: want one as driver.NewID makes them: %w", d.Package, len(c.ID), driver.ErrRefused)
	case c.Name == "" || len(c.Name) > d.MaxName:
		return fmt.Errorf("%s: name of %d bytes: want 1 to %d: %w", d.Package, len(c.Name), d.MaxName, driver.ErrRefused)
	case c.Weight < 1 || c.Limit < c.Weight || c.Limit > driver.All:
		return fmt.Errorf("%s: a claim of weight %d under limit %d: want 1 ≤ weight ≤ limit ≤ %d: %w", d.Package, c.Weight, c.Limit, driver.All, driver.ErrRefused)
	}
	return nil
}

// validID reports whether an ID is as driver.NewID makes them: such a one means nothing in SQL.
func validID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(id) == 22
}

// Granted is called when the claim is heard to be held.
func (c *Claim) Granted(fence uint64) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.Leaving && c.state <= Waiting {
		c.admit(fence)
	}
}

// Again is called when the claim is heard to have changed. It asks, where somebody waits for it.
func (c *Claim) Again() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.Leaving && c.state <= Waiting {
		c.asked = nil
		c.change.Give()
	}
}

// admit moves the claim to held. The session's mutex is held, here and below.
func (c *Claim) admit(fence uint64) {
	if c.state <= Waiting {
		c.state, c.again = Held, time.Time{}
		c.grant = driver.Grant{Held: true, Fence: fence}
		c.change.Give()
	}
	c.unhear()
}

// end moves the claim to gone or broken.
func (c *Claim) end(s State) {
	if c.state < Broken {
		c.state = s
		c.change.Give()
	}
}

func (c *Claim) unhear() {
	if c.Queue && c.s.d.Ears != nil {
		c.s.d.Ears.Unhear(c)
	}
}

// How often a claim asks that nobody can tell.
const (
	pollFirst = 25 * time.Millisecond
	poll      = 250 * time.Millisecond
)

// schedule sets when a waiting claim looks again by itself: a moment later than the answer says, so that the time is over then. Where
// nobody can be told, the first in line looks often.
func (c *Claim) schedule(a Answer) {
	c.again = time.Time{}
	if a.Left >= 0 {
		c.again = time.Now().Add(a.Left + time.Millisecond)
	}
	if c.s.d.Ears == nil {
		pause := poll
		if a.Head {
			pause = pollFirst
		}
		c.soon(pause)
	}
	c.change.Give()
}

// soon has the claim ask after a pause, unless it does before.
func (c *Claim) soon(pause time.Duration) {
	if at := time.Now().Add(pause); c.again.IsZero() || at.Before(c.again) {
		c.again = at
	}
}
