package redissonlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Acquire implements driver.Session. A free name takes one script. A claim that finds it held, and
// may wait, subscribes first and then asks again, unless this process was subscribed before it
// asked: no message between the answer and the wait is missed.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	return s.Session.Acquire(ctx, dc, s.enter)
}

// enter asks for the claim's state, and puts it into its group if it waits.
func (s *session) enter(ctx context.Context, c *claim) error {
	s.Mu.Lock()
	g := s.d.groups.all[place{c.Name, c.Kind}]
	version, subscribed := uint64(0), g != nil && g.subscribed()
	if subscribed {
		version = g.version
	}
	s.Mu.Unlock()
	if err := s.ask(ctx, c, version); err != nil {
		return err
	}
	s.Mu.Lock()
	now := c.group
	s.Mu.Unlock()
	if now == nil || subscribed && now == g {
		return nil
	}
	return s.look(ctx, c, now)
}

// look listens and then asks.
func (s *session) look(ctx context.Context, c *claim, g *group) error {
	if err := s.d.groups.listen(ctx, g); err != nil {
		return err
	}
	s.Mu.Lock()
	version := g.version
	s.Mu.Unlock()
	return s.ask(ctx, c, version)
}

// ask runs the script for a claim. version is that of its group before.
func (s *session) ask(ctx context.Context, c *claim, version uint64) error {
	s.Mu.Lock()
	leaving, over, call := c.Leaving, c.State >= redisstore.Gone, s.takeCall(c)
	s.Mu.Unlock()
	if leaving {
		return fmt.Errorf("redissonlock: %w: the claim is being released", driver.ErrNotSent)
	}
	if over { // the request would acquire it again
		return nil
	}
	v, err := s.d.store.Run.Run(ctx, call)
	if err != nil {
		return s.Failed(c, err)
	}
	a, err := parseAnswer(v)
	if err != nil {
		return s.Failed(c, err)
	}
	return s.settle(c, a, version)
}

// takeCall is a run of the script for c. Mu is held.
func (s *session) takeCall(c *claim) redisconn.Call {
	waits := "0"
	if c.Queue {
		waits = "1"
	}
	k := c.keys
	return redisconn.Call{
		Script: takeScript, Keys: []string{k.name, k.counter, k.places, k.notes, k.ownTime(c.Kind, c.field)},
		Args:  []string{c.field, redisstore.Letter(c.Kind), s.TTLMS, s.KeepMS, waits, c.known(), string(appendNote(nil, s.Owner, c.Claim.Claim))},
		Again: s.Resend(c),
	}
}

// answer is what the script take answers.
type answer struct {
	state, left int64
	token       uint64
	field, text string
}

// States in the answer.
const (
	notHeld = iota
	isHeld
	isBroken
	isGone
	otherKind
	otherType
	fairLine
)

func parseAnswer(v any) (a answer, err error) {
	f, _ := v.([]any)
	if len(f) != 5 {
		return a, errors.New("the script take answered something else than five fields")
	}
	var numbers [3]int64
	for i := range numbers {
		var ok bool
		if numbers[i], ok = f[i].(int64); !ok {
			return a, fmt.Errorf("the script take answered %T where a number belongs", f[i])
		}
	}
	a.state, a.token, a.left = numbers[0], uint64(max(numbers[1], 0)), numbers[2]
	a.field, _ = f[3].(string)
	a.text, _ = f[4].(string)
	return a, nil
}

// settle handles the answer to a question that began at a version of the claim's group.
func (s *session) settle(c *claim, a answer, version uint64) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c.Leaving {
		return nil
	}
	now := time.Now()
	switch a.state {
	case isHeld:
		g := c.group
		if g == nil {
			g = s.d.groups.all[place{c.Name, c.Kind}]
		}
		c.admit(a.token, now)
		s.d.subs.Began()
		if g != nil && c.Kind.Exclusive() {
			g.taken(version, s.TTL)
		}
	case notHeld:
		h := inWay(a.field, a.text, c.Kind)
		if h != nil && a.left < 0 {
			h.Note = "a hash without an expiry time: Redisson never leaves one, so nothing but a message or a renewal finds it free"
		}
		if !c.Queue {
			c.Holder = h
			break
		}
		if !c.Enqueue(h) {
			break
		}
		s.d.subs.Began()
		if c.group == nil {
			s.d.groups.enter(c)
		}
		c.group.taken(version, time.Duration(a.left)*time.Millisecond)
		if c.News {
			c.Change.Give()
		}
	case isBroken:
		if c.State < redisstore.Gone {
			s.Lose(driver.Loss{ID: c.ID, Err: driver.ErrBroken})
		}
		c.end(redisstore.Broken, now)
	case isGone:
		c.end(redisstore.Gone, now)
	default:
		return c.refused(a)
	}
	return nil
}

// refused says why the name cannot be this claim's.
func (c *claim) refused(a answer) error {
	why := "a line of Redisson's fair locks stands there: a fair lock and a lock on one name exclude each other, but do not wake each other, and this one would overtake the line; use getLock there, or another name"
	switch {
	case a.state == otherType:
		return fmt.Errorf("redissonlock: name %q: %w: %w: a %s stands there, not a hash of Redisson: it is somebody's data, or a lock in another layout (that of redislock, redsync or redis-py is a string); one name has one layout",
			c.Name, driver.ErrRefused, driver.ErrBadData, a.text)
	case a.state == otherKind && a.text == "rw":
		why = "a read/write lock stands there: in Redisson's layout a mutex and a read/write lock do not exclude each other, so a name is one or the other"
	case a.state == otherKind:
		why = "a mutex stands there (RLock, FairLock, FencedLock): in Redisson's layout a mutex and a read/write lock do not exclude each other, so a name is one or the other"
	}
	return fmt.Errorf("redissonlock: name %q: %w: %s", c.Name, driver.ErrName, why)
}
