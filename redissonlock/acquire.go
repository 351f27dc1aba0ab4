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

// Acquire implements driver.Session. A free name takes one script. Who finds it held and wants to wait listens first, and
// then asks again, unless this process has been listening all the time: a message between look and sleep is not missed.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("redissonlock: %w: %w", driver.ErrNotSent, err)
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
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err == nil {
		c.news = false
	}
	switch {
	case c.state == gone:
		return driver.Grant{}, driver.ErrGone
	case c.state == broken:
		return driver.Grant{}, driver.ErrBroken
	case err != nil:
		if c.state == unsent && !c.doubt && (errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)) {
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

// enter asks for the claim's state, and has it wait if it is to.
func (s *session) enter(ctx context.Context, c *claim) error {
	d := s.d
	d.mu.Lock()
	r := d.rooms[place{c.Name, c.Kind}]
	var seen uint64
	listened := r != nil && r.listens()
	if listened {
		seen = r.turn
	}
	d.mu.Unlock()
	if err := s.ask(ctx, c, seen); err != nil {
		return err
	}
	d.mu.Lock()
	now := c.room
	d.mu.Unlock()
	if now == nil || listened && now == r {
		return nil
	}
	return s.look(ctx, c, now)
}

// look listens and then asks.
func (s *session) look(ctx context.Context, c *claim, r *room) error {
	if err := s.d.listen(ctx, r); err != nil {
		return err
	}
	s.d.mu.Lock()
	seen := r.turn
	s.d.mu.Unlock()
	return s.ask(ctx, c, seen)
}

// ask runs the script for a claim. seen is the turn of its room before.
func (s *session) ask(ctx context.Context, c *claim, seen uint64) error {
	s.d.mu.Lock()
	if c.Leaving {
		s.d.mu.Unlock()
		return fmt.Errorf("redissonlock: %w: the claim is being released", driver.ErrNotSent)
	}
	if c.state >= gone { // asked for once more it would stand there for nobody
		s.d.mu.Unlock()
		return nil
	}
	call := s.takeCall(c)
	s.d.mu.Unlock()
	v, err := s.d.run.Run(ctx, call)
	if err != nil {
		return s.failed(c, err)
	}
	a, err := parseAnswer(v)
	if err != nil {
		return s.failed(c, err)
	}
	return s.settle(c, a, seen)
}

// takeCall is a run of the script for c. d.mu is held.
func (s *session) takeCall(c *claim) redisconn.Call {
	waits := "0"
	if c.Queue {
		waits = "1"
	}
	k := c.keys
	return redisconn.Call{
		Script: takeScript, Keys: []string{k.name, k.counter, k.places, k.notes, k.ownTime(c.Kind, c.field)},
		Args:  []string{c.field, redisstore.Letter(c.Kind), s.ttlMS, s.keepMS, waits, c.known(), string(appendNote(nil, s.owner, c.Claim))},
		Again: func() bool { return s.again(c) },
	}
}

// again has a request by which c may come to stand in the store sent once more, unless c is known to have gone meanwhile:
// then it would stand there for nobody. A Release waits until that is over. The first request may arrive even after the
// Release: see leaveCall.
func (s *session) again(c *claim) bool {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if c.state >= gone {
		return false
	}
	c.doubt = true
	return true
}

// failed notes of a request that failed whether it may still be carried out.
func (s *session) failed(c *claim, err error) error {
	if !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, driver.ErrRefused) {
		s.d.mu.Lock()
		c.doubt = true
		s.d.mu.Unlock()
	}
	return fmt.Errorf("redissonlock: %w", err)
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

// settle takes in the answer.
func (s *session) settle(c *claim, a answer, seen uint64) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if c.Leaving {
		return nil
	}
	now := time.Now()
	switch a.state {
	case isHeld:
		r := c.room
		if r == nil {
			r = s.d.rooms[place{c.Name, c.Kind}]
		}
		c.admit(a.token, now)
		s.d.holding.Began()
		if r != nil && c.Kind.Exclusive() {
			r.occupied(seen, s.ttl)
		}
	case notHeld:
		h := inWay(a.field, a.text, c.Kind)
		if h != nil && a.left < 0 {
			h.Note = "a hash without an expiry time: Redisson never leaves one, so nothing but a message or a renewal finds it free"
		}
		if !c.Queue {
			c.holder = h
			break
		}
		if c.state > waiting {
			break
		}
		c.news = c.news || c.state == waiting && h != nil && (c.holder == nil || h.PublicID != c.holder.PublicID)
		c.state, c.holder = waiting, h
		s.d.holding.Began()
		if c.room == nil {
			s.d.room(c).enter(c)
		}
		c.room.occupied(seen, time.Duration(a.left)*time.Millisecond)
		if c.news {
			c.change.Give()
		}
	case isBroken:
		if c.state < gone {
			s.Lose(driver.Loss{ID: c.ID, Err: driver.ErrBroken})
		}
		c.end(broken, now)
	case isGone:
		c.end(gone, now)
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
