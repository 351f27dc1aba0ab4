package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Acquire implements driver.Session. A free name takes one short script. Where somebody holds it the long script puts
// the claim in line, after this process has subscribed to hear of its grant; a name where others stood in line lately is
// asked for by the long script at once.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("redislock: %w: %w", driver.ErrNotSent, err)
	}
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	err = s.fly(ctx, c, func(ctx context.Context) error { return s.enter(ctx, c) })
	return s.answer(c, err)
}

// answer is the claim's state, unless err says that nothing is known.
func (s *session) answer(c *claim, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		c.news = false
	}
	switch {
	case c.state == gone:
		return driver.Grant{}, driver.ErrGone
	case c.state == broken:
		return driver.Grant{}, driver.ErrBroken
	case err != nil:
		if c.state == unsent && c.last.IsZero() && (errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)) {
			s.forget(c)
		}
		return driver.Grant{}, err
	case c.state == unsent:
		g := c.grant()
		s.forget(c)
		return g, nil
	}
	return c.grant(), nil
}

// enter asks for the claim's state and puts it in line if it is new.
func (s *session) enter(ctx context.Context, c *claim) error {
	s.mu.Lock()
	again, leaving := c.state != unsent, c.Leaving
	s.mu.Unlock()
	if leaving {
		return fmt.Errorf("redislock: %w: the claim is being released", driver.ErrNotSent)
	}
	if !again && c.exclusive() && !s.d.crowd.At(c.Name) {
		if decided, err := s.take(ctx, c, s.d.channelAt(c.Name)); decided || err != nil {
			return err
		}
	}
	return s.join(ctx, c, again)
}

// take runs the short script, and reports whether that decided.
func (s *session) take(ctx context.Context, c *claim, channel string) (decided bool, err error) {
	value := make([]byte, 0, 256)
	value = append(append(append(value, layout...), c.ID...), '-')
	value = s.info(c, channel).Append(value)
	started := s.sent(c)
	r := request{keys: &c.keys, value: string(value), ttl: s.ttlMS, again: s.again(c)}
	answer, err := s.d.batch.send(ctx, r)
	if err != nil {
		return false, s.failed(c, started, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v := answer.(type) {
	case int64:
		if v == 0 {
			return false, nil
		}
		c.admit(v)
		s.d.holding.Began()
		return true, nil
	case string:
		if c.Queue || v == cover || holderID(v) == c.ID || newer(v) {
			return false, nil
		}
		c.holder = holder(v)
		return true, nil
	}
	return false, nil
}

// join runs the long script for a claim that is new, or that stood in line before.
func (s *session) join(ctx context.Context, c *claim, again bool) error {
	var e *ear
	if c.Queue {
		var err error
		if e, err = s.d.listen(ctx, c.Name); err != nil {
			return err
		}
		s.d.audience.Add(c.ID, s)
	}
	s.mu.Lock()
	if c.Leaving {
		s.mu.Unlock()
		return fmt.Errorf("redislock: %w: the claim is being released", driver.ErrNotSent)
	}
	c.listens(e)
	s.mu.Unlock()
	started := s.sent(c)
	call := s.lineCall(nil, c, e, again)
	call.Again = s.again(c)
	v, err := s.d.run.Run(ctx, call)
	if err != nil {
		return s.failed(c, started, err)
	}
	r, err := parseLineReply(v)
	if err != nil {
		return s.failed(c, started, err)
	}
	return s.settle(c, e, r)
}

// again has a request by which c may come to stand in the store sent once more, unless c is known to have gone meanwhile:
// then it would stand there for nobody. A Release waits until that is over. The first request may arrive even after the
// Release: see gone.
func (s *session) again(c *claim) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.state >= gone {
			return false
		}
		c.doubt = true
		return true
	}
}

// sent notes that a request for c is about to leave.
func (s *session) sent(c *claim) time.Time {
	now := time.Now()
	s.mu.Lock()
	if c.last.IsZero() {
		c.last = now
	}
	s.mu.Unlock()
	return now
}

// failed notes of a request that failed whether it may still be carried out.
func (s *session) failed(c *claim, started time.Time, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
		if c.last.Equal(started) {
			c.last = time.Time{}
		}
		if errors.Is(err, driver.ErrRefused) && redisconn.InScript(err) { // what the script did before its error stays done
			s.d.haunted(c.keys, c.ID, 0)
		}
	} else {
		c.doubt = true
	}
	return fmt.Errorf("redislock: %w", err)
}

// lineReply is the answer of the long script.
type lineReply struct {
	state, left, counter, wait, head, why int64
	value                                 string
}

// States in the answer of the long script.
const (
	lineOut = iota
	lineWaits
	lineHeld
	lineBroken
	lineGone
	lineMisfit
)

func parseLineReply(v any) (r lineReply, err error) {
	f, _ := v.([]any)
	if len(f) != 7 {
		return r, errors.New("the long script answered something else than seven fields")
	}
	for i, n := range []*int64{&r.state, &r.left, &r.counter, &r.wait, &r.head, &r.why} {
		var ok bool
		if *n, ok = f[i].(int64); !ok {
			return r, fmt.Errorf("the long script answered %T where a number belongs", f[i])
		}
	}
	r.value, _ = f[6].(string)
	return r, nil
}

// lineCall is a run of the long script in which old leaves and c joins; either may be nil.
func (s *session) lineCall(old, c *claim, e *ear, again bool) redisconn.Call {
	args := make([]string, 4, 13)
	args[1], args[2], args[3] = digit(s.d.options.Shared), s.keepMS, s.d.lifeMS
	var k keys
	if old != nil {
		k, args[0] = old.keys, old.ID
	}
	if c != nil {
		k = c.keys
		var channel string
		if e != nil {
			channel = e.channel
		} else { // it does not wait, and is to hear all the same that it was broken
			channel = s.d.channelAt(c.Name)
		}
		args = append(args, c.ID, redisstore.Letter(c.Kind), strconv.Itoa(c.Weight), strconv.Itoa(c.Limit), s.ttlMS,
			digit(c.Queue), channel, string(s.info(c, channel).Append(make([]byte, 0, 256))), digit(again))
	}
	return redisconn.Call{Script: lineScript, Keys: k.all(), Args: args}
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// settle takes in the answer of the long script, which was asked with e's channel.
//
// Messages and answers come by different connections, so the later may be read first. An answer that says when to ask again does not
// undo what has the claim ask at once: a message that may be newer, or the end of the subscription that it was asked with.
func (s *session) settle(c *claim, e *ear, r lineReply) error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Leaving {
		return nil
	}
	switch r.state {
	case lineHeld:
		c.admit(r.counter)
		s.d.holding.Began()
	case lineWaits:
		if c.state <= waiting {
			c.state = waiting
			h := s.inWay(c, r, now)
			c.news = c.news || h != nil && (c.holder == nil || h.PublicID != c.holder.PublicID || h.Note != c.holder.Note)
			c.holder = h
			c.recheck.Schedule(now, r.wait, r.head == 1, r.why)
			if c.anew || c.deafTo(e) {
				c.ask()
			}
		}
		s.d.crowd.Set(c.Name, true)
	case lineBroken:
		c.end(broken)
	case lineGone:
		c.end(gone)
	case lineMisfit:
		return fmt.Errorf("redislock: name %q: %w: permits of a semaphore never share a name with other claims", c.Name, driver.ErrName)
	default:
		c.holder = s.inWay(c, r, now)
	}
	return nil
}

// inWay describes who stands in the way.
func (s *session) inWay(c *claim, r lineReply, now time.Time) *driver.Holder {
	h := holder(r.value)
	if r.value == cover && c.Kind == driver.Permit { // what permits wait for are permits
		h.Kind, h.Limit = driver.Permit, c.Limit
	}
	if h != nil && h.Foreign && r.wait < 0 && now.Sub(c.since) >= s.ttl {
		h.Note = "a value without an expiry time: it looks like somebody's data, not like a lock"
	}
	return h
}
