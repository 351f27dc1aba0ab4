package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// State is what a process knows of a claim.
type State uint8

// States of a claim.
const (
	Unsent  State = iota // not sent, or the server answered that it has no such claim
	Waiting              // in line
	Held
	Gone   // the server had it, and has no more
	Broken // by an operator
)

// Claim is what a process knows of one claim, whatever the layout. Its State only moves forward,
// since messages and answers come by different connections, in any order. The mutex of its Session
// guards all of it.
type Claim struct {
	driver.Claim

	State  State
	Fence  uint64          // while Held
	Holder *driver.Holder  // who is in the way, as the last answer said; nil while Held
	News   bool            // Acquire and Wait have not returned this Holder yet
	Doubt  bool            // a request for it had no answer and may still be carried out
	Change sessions.Signal // wakes its Wait

	sessions.Departure
}

// NewClaim returns a claim of which nothing is known.
func NewClaim(c driver.Claim) Claim { return Claim{Claim: c, Change: sessions.NewSignal()} }

// Common returns c. A Session calls it on the claim of a layout, which embeds a Claim.
func (c *Claim) Common() *Claim { return c }

// Live reports whether the claim holds or waits, and is not being released.
func (c *Claim) Live() bool { return (c.State == Held || c.State == Waiting) && !c.Leaving }

// Grant returns the claim's state in the form of driver.Session.
func (c *Claim) Grant() driver.Grant {
	if c.State == Held {
		return driver.Grant{Held: true, Fence: c.Fence}
	}
	return driver.Grant{Holder: c.Holder}
}

// Loss returns the loss of the claim.
func (c *Claim) Loss() driver.Loss {
	if c.State == Broken {
		return driver.Loss{ID: c.ID, Err: driver.ErrBroken}
	}
	return driver.Loss{ID: c.ID, Err: driver.ErrGone}
}

// Enqueue records the answer that the claim waits behind holder. It returns false, and records
// nothing, if the claim is past that: the answer was overtaken by a message.
func (c *Claim) Enqueue(holder *driver.Holder) bool {
	if c.State > Waiting {
		return false
	}
	if c.State == Waiting && holder != nil {
		c.News = c.News || c.Holder == nil || holder.PublicID != c.Holder.PublicID || holder.Note != c.Holder.Note
	}
	c.State, c.Holder = Waiting, holder
	return true
}

// Admit moves the claim to Held. It returns false if it is past that, or held already.
func (c *Claim) Admit(fence uint64) bool {
	if c.State > Waiting {
		return false
	}
	c.State, c.Fence, c.Holder, c.News = Held, fence, nil, false
	c.Change.Give()
	return true
}

// End moves the claim to Gone or Broken, unless it is there.
func (c *Claim) End(s State) {
	if c.State < Gone {
		c.State, c.Fence = s, 0
		c.Change.Give()
	}
}

// Pause waits until the claim's state may have changed: until Change, until landed or changed is
// closed, or until at, if that is not zero. It returns ctx's error if ctx ends first.
func (c *Claim) Pause(ctx context.Context, at time.Time, landed, changed <-chan struct{}) error {
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-c.Change:
	case <-landed:
	case <-changed:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// nothingDone reports whether the error of a request says that the server did nothing.
func nothingDone(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)
}

// Resent records that a request was sent a second time, since its connection had ended before the
// answer.
type Resent bool

// Again is the Again of the request.
func (r *Resent) Again() bool {
	*r = true
	return true
}

// ErrTwice is the error of a request that was sent twice, and whose second answer does not show
// what the first one did.
var ErrTwice = errors.New("the connection ended before the answer, and when asked again the server has the claim no more")
