package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// Acquire implements driver.Session. A free name takes one short script. If the name is held, the
// long script puts the claim in line, after this process has subscribed, so that the message of its
// grant arrives; a name where others stood in line lately is asked for by the long script at once.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	return s.Session.Acquire(ctx, dc, s.enter)
}

// enter asks for the claim's state and puts it in line if it is new.
func (s *session) enter(ctx context.Context, c *claim) error {
	s.Mu.Lock()
	again, leaving := c.State != redisstore.Unsent, c.Leaving
	s.Mu.Unlock()
	if leaving {
		return errLeaving
	}
	if !again && c.exclusive() && !s.d.contended.At(c.Name) {
		if decided, err := s.take(ctx, c); decided || err != nil {
			return err
		}
	}
	return s.join(ctx, c, again)
}

var errLeaving = fmt.Errorf("redislock: %w: the claim is being released", driver.ErrNotSent)

// take runs the short script, and reports whether that decided.
func (s *session) take(ctx context.Context, c *claim) (decided bool, err error) {
	value := make([]byte, 0, 256)
	value = append(append(append(value, layout...), c.ID...), '-')
	value = s.info(c, s.d.subs.Channel(c.Name)).Append(value)
	r := request{script: takeScript, keys: &c.keys, value: string(value), ttl: s.TTLMS, again: s.Resend(c)}
	answer, err := s.d.send(ctx, r)
	if err != nil {
		return false, s.failed(c, err)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch v := answer.(type) {
	case int64:
		if v == 0 {
			return false, nil
		}
		c.admit(v)
		s.d.subs.Began()
		return true, nil
	case string:
		if c.Queue || v == cover || holderID(v) == c.ID || newer(v) {
			return false, nil
		}
		c.Holder = holder(v)
		return true, nil
	}
	return false, nil
}

// join runs the long script for a claim that is new, or that stood in line before.
func (s *session) join(ctx context.Context, c *claim, again bool) error {
	sub, err := s.listen(ctx, c)
	if err != nil {
		return err
	}
	s.Mu.Lock()
	leaving := c.Leaving
	if !leaving {
		c.sub, c.stale = sub, false
	}
	s.Mu.Unlock()
	if leaving {
		return errLeaving
	}
	call := s.lineCall(nil, c, sub, again)
	call.Again = s.Resend(c)
	r, err := s.runLine(ctx, c, call)
	if err != nil {
		return err
	}
	return s.settle(c, sub, r)
}

// listen subscribes for a claim that may wait, and registers it for messages.
func (s *session) listen(ctx context.Context, c *claim) (*redisstore.Subscription, error) {
	if !c.Queue {
		return nil, nil //nolint:nilnil // it needs none
	}
	sub, err := s.d.subs.Listen(ctx, c.Name)
	if err == nil {
		s.d.receivers.Add(c.ID, s)
	}
	return sub, err
}

// settle handles the answer of the long script, which was asked with sub's channel.
//
// Messages and answers come by different connections, so the later may be read first. An answer
// that says when to ask again does not undo what makes the claim ask at once: a message that may be
// newer, or the end of the subscription that it was asked with.
func (s *session) settle(c *claim, sub *redisstore.Subscription, r lineReply) error {
	now := time.Now()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c.Leaving {
		return nil
	}
	switch r.state {
	case lineHeld:
		c.admit(r.counter)
		s.d.subs.Began()
	case lineWaits:
		if c.Enqueue(s.inWay(c, r, now)) {
			c.recheck.Schedule(now, r.wait, r.head == 1, r.why)
			if c.stale || c.subscriptionLost(sub) {
				c.ask()
			}
		}
		s.d.contended.Set(c.Name, true)
	case lineBroken:
		c.End(redisstore.Broken)
	case lineGone:
		c.End(redisstore.Gone)
	case lineMisfit:
		return fmt.Errorf("redislock: name %q: %w: permits of a semaphore never share a name with other claims", c.Name, driver.ErrName)
	default:
		c.Holder = s.inWay(c, r, now)
	}
	return nil
}

// inWay describes what the claim waits for.
func (s *session) inWay(c *claim, r lineReply, now time.Time) *driver.Holder {
	h := holder(r.value)
	if r.value == cover && c.Kind == driver.Permit { // what permits wait for are permits
		h.Kind, h.Limit = driver.Permit, c.Limit
	}
	if h != nil && h.Foreign && r.wait < 0 && now.Sub(c.created) >= s.TTL {
		h.Note = foreignEndless
	}
	return h
}
