package rowline

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Claim is one claim of a session. The session's mutex guards all its fields.
type Claim struct {
	driver.Claim
	s     *Session
	state State
	grant driver.Grant

	void   time.Time       // when the last request without an answer is void; zero where there is none
	asked  Subscription    // that it had before it last asked; nil to ask again
	again  time.Time       // when it asks by itself; zero for never
	passed bool            // a Renew began while it was let in, and may not have reached it
	change sessions.Signal // wakes its Wait

	gate string             // behind which it waits, or ""
	turn context.CancelFunc // ends the wait there
	head bool               // it is the first that waits, as far as is known

	sessions.Departure
}

// Granted is called when a message says that the claim is held.
func (c *Claim) Granted(fence uint64) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.Leaving && c.state <= Waiting {
		c.admit(fence)
	}
}

// Again is called when a message says that the claim has changed. If Wait is running, it asks.
func (c *Claim) Again() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.Leaving && c.state <= Waiting {
		c.asked = nil
		c.change.Give()
	}
}

// Current is called if sub has reported the state of the claim, and will report every change, so
// that the claim need not ask.
func (c *Claim) Current(sub Subscription) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.asked = sub
}

// admit moves the claim to held. The caller holds the session's mutex, here and below.
func (c *Claim) admit(fence uint64) {
	if c.state <= Waiting {
		c.state, c.again = Held, time.Time{}
		c.grant = driver.Grant{Held: true, Fence: fence}
		c.change.Give()
	}
	c.unsubscribe()
	c.behind("")
}

// loss returns the loss to be reported.
func (c *Claim) loss() driver.Loss {
	if c.state == Broken {
		return driver.Loss{ID: c.ID, Err: driver.ErrBroken}
	}
	return driver.Loss{ID: c.ID, Err: driver.ErrGone}
}

// end moves the claim to gone or broken.
func (c *Claim) end(s State) {
	if c.state < Broken {
		c.state = s
		c.change.Give()
	}
	c.behind("")
}

func (c *Claim) unsubscribe() {
	if c.Queue && c.s.d.Notifier != nil {
		c.s.d.Notifier.Unsubscribe(c)
	}
}

// How often a claim asks that gets no messages: the first in line, and others.
const (
	pollFirst = 25 * time.Millisecond
	poll      = 250 * time.Millisecond
)

// schedule sets when a waiting claim asks again by itself: a moment later than the answer says, so
// that the time is over then. A claim that gets no messages polls.
func (c *Claim) schedule(a Answer) {
	if c.state != Waiting {
		return // a server that crashed may know less than this process
	}
	c.again = time.Time{}
	if a.Left >= 0 {
		c.again = time.Now().Add(a.Left + time.Millisecond)
	}
	if c.head = a.Head; c.s.d.Notifier == nil && !c.behind(a.Gate) {
		c.poll()
	}
	c.change.Give()
}

// poll schedules the next request of a claim that gets no messages.
func (c *Claim) poll() {
	if c.head {
		c.soon(pollFirst)
	} else {
		c.soon(poll)
	}
}

// behind starts to wait behind a gate, or behind none if gate is "", and ends the wait behind
// another one. It reports whether the claim waits behind a gate.
func (c *Claim) behind(gate string) bool {
	if c.gate == gate {
		return gate != ""
	}
	if c.gate != "" {
		c.gate = ""
		c.turn()
	}
	if gate == "" || c.s.d.Gates == nil || !c.Queue {
		return false
	}
	var ctx context.Context
	ctx, c.turn = context.WithCancel(c.s.d.ctx)
	c.gate = gate
	go c.await(ctx, gate)
	return true
}

// await waits behind a gate and handles the answer. If the gate is open although the claim that it
// belongs to is still in line, the process of that claim is gone or has lost a connection. Then c
// asks, and after that waits behind the gate again.
func (c *Claim) await(ctx context.Context, gate string) {
	a, err := c.s.d.Gates.Await(ctx, c.s.id, c.Claim, gate)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if ctx.Err() != nil {
		return // behind has ended this wait
	}
	c.gate = ""
	c.turn()
	switch {
	case c.Leaving || c.state != Waiting:
		return
	case err == nil && a.State == Held:
		c.admit(a.Fence)
	case err == nil && a.State == Waiting && a.Gate != gate:
		c.schedule(a)
	case err == nil && a.State != Waiting:
		c.soon(0)
	default:
		c.poll()
	}
	c.change.Give()
}

// soon schedules a request after a pause, unless there is an earlier one.
func (c *Claim) soon(pause time.Duration) {
	if at := time.Now().Add(pause); c.again.IsZero() || at.Before(c.again) {
		c.again = at
	}
}

// Notifier calls the methods Granted and Again of claims that wait when messages for them arrive.
// Subscribe and Unsubscribe must not call these.
type Notifier interface {
	// Subscribe registers a claim for messages, until Unsubscribe. It returns the subscription if
	// there is one already, or nil.
	Subscribe(c *Claim) Subscription

	// Listen returns the subscription of a claim that waits, and makes it if there is none. If it
	// reports every change of the claim, Listen calls the claim's method Current.
	Listen(ctx context.Context, c *Claim) (Subscription, error)

	// Unsubscribe ends that.
	Unsubscribe(c *Claim)
}
