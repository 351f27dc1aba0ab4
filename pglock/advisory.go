package pglock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// How a lock is asked for and given back, of a claim. What was taken is a token, 0 where there are none; -1: it was not free.

// token draws one, where the claim has one and the database a sequence.
func (s *connSession) token(l *link) string {
	if !l.Kind.Exclusive() || !s.d.fence {
		return "0"
	}
	return "nextval('" + s.d.in + "token')"
}

func shared(l *link) string {
	if l.Kind.Exclusive() {
		return ""
	}
	return "_shared"
}

func (s *connSession) tryLock(l *link) string {
	return fmt.Sprintf("select case when pg_try_advisory_lock%s(%v) then %s else -1 end", shared(l), l.key, s.token(l))
}

func (s *connSession) lock(l *link) string {
	return fmt.Sprintf("select pg_advisory_lock%s(%v); select %s", shared(l), l.key, s.token(l))
}

func (s *connSession) unlock(l *link) string {
	return fmt.Sprintf("select pg_advisory_unlock%s(%v)", shared(l), l.key)
}

// Acquire implements driver.Session.
func (s *connSession) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("pglock: %w: %w", driver.ErrNotSent, err)
	}
	l, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	err = s.fly(ctx, l, func(ctx context.Context) error { return s.acquire(ctx, l) })
	if err != nil {
		err = fmt.Errorf("pglock: lock %q: %w", dc.Name, err)
	}
	return s.answer(l, err)
}

func (s *connSession) acquire(ctx context.Context, l *link) error {
	s.mu.Lock()
	st, c := l.state, l.conn
	if l.leaving {
		s.mu.Unlock()
		return fmt.Errorf("%w: the claim is being released", driver.ErrNotSent)
	}
	l.unheard = l.unheard || st == waiting
	s.mu.Unlock()
	switch {
	case st == held:
		s.same(c, c.call(ping, s.spec.TTL))
		s.mu.Lock()
		l.unheard = false
		s.mu.Unlock()
		return nil
	case st != out:
		return nil
	case c != nil: // asked before, without knowing its place
		return s.placed(ctx, l, c)
	}
	got, err := s.try(ctx, l)
	if errors.As(err, new(errEnded)) { // for having been idle, perhaps
		got, err = s.try(ctx, l)
	}
	if err != nil || got || !l.Queue {
		return err
	}
	return s.queue(ctx, l)
}

// try takes what is free, in one round trip. A backend is given again what it has, whoever waits for it, so a key stands on a connection
// once; and what another claim of the session excludes is not asked for.
func (s *connSession) try(ctx context.Context, l *link) (bool, error) {
	c, err := s.holding(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	excluded := false
	for _, other := range s.claims {
		excluded = excluded || other.key == l.key && other.state == held && (other.Kind.Exclusive() || l.Kind.Exclusive())
	}
	_, has := c.claims[l.key]
	if !excluded && !has {
		c.claims[l.key], l.conn = l, c
	}
	s.mu.Unlock()
	if excluded {
		return false, nil
	}
	if has {
		if c, err = s.spare(ctx, l); err != nil {
			return false, err
		}
	}
	r := c.call(s.tryLock(l), s.spec.TTL)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err == nil && r.field(0) != "-1" && c == l.conn {
		return true, s.admit(l, r)
	}
	if r.err != nil && !errors.As(r.err, new(errEnded)) {
		c.ask(s.unlock(l)) // the lock was taken, perhaps, and then there was no token
		r.err = classify(r.err, &s.d.options)
	}
	s.part(l)
	return false, r.err
}

// admit moves the claim to held. s.mu is held.
func (s *connSession) admit(l *link, r reply) error {
	if _, there := s.conns[l.conn]; !there {
		l.end()
		return nil
	}
	l.state, l.fence = held, uint64(number([]byte(r.field(0)))) //nolint:gosec // drawn by us
	l.changed()
	return nil
}

// queue puts a claim into the line of the server, on a connection of its own. It has its place when the server's table of locks shows it:
// from then on it is ahead of who comes later.
func (s *connSession) queue(ctx context.Context, l *link) error {
	s.mu.Lock()
	full := s.waiting >= s.d.options.MaxWaiting
	if !full {
		s.waiting++
	}
	s.mu.Unlock()
	if full {
		return fmt.Errorf("%w: %w: %d claims of this session wait on a connection each: raise MaxWaiting, or use technique rows", driver.ErrNotSent, driver.ErrUnable, s.d.options.MaxWaiting)
	}
	c, err := s.spare(ctx, l)
	if err != nil {
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
		return err
	}
	s.mu.Lock()
	c.blocked = true
	l.decided = make(chan struct{})
	s.mu.Unlock()
	answer := c.ask(s.lock(l))
	go s.decide(l, c, answer)
	return s.placed(ctx, l, c)
}

// placed returns when the claim has its place, or is held. An error leaves that open.
func (s *connSession) placed(ctx context.Context, l *link, c *conn) error {
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		main, err := s.holding(ctx)
		if err != nil {
			return fmt.Errorf("the place in line is not known: %s", err.Error()) // and not ErrNotSent
		}
		r := main.call(fmt.Sprintf("select count(*) from pg_locks l where l.pid = %s and %s", c.pid, l.key.locks()), s.spec.TTL)
		s.mu.Lock()
		if l.state == out && r.err == nil && r.field(0) != "0" {
			l.state = waiting
		}
		st := l.state
		s.mu.Unlock()
		if st != out {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-l.decided:
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// decide takes in the answer to a statement that waited.
func (s *connSession) decide(l *link, c *conn, answer <-chan reply) {
	r := <-answer
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(l.decided)
	s.waiting--
	c.blocked = false
	switch {
	case l.state == gone:
	case r.err == nil:
		_ = s.admit(l, r)
	default:
		l.end()
		if !l.leaving {
			s.Lose(l.ID)
			c.close() // what it has is not known
		}
	}
}

// Wait implements driver.Session.
func (s *connSession) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	l, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	for {
		s.mu.Lock()
		st, unheard := l.state, l.unheard
		s.mu.Unlock()
		switch {
		case st == out: // Acquire had no answer
			return s.Acquire(ctx, dc)
		case st == held && unheard: // its time may have begun before that of the last Renew, which passed over it
			return s.Acquire(ctx, dc)
		case st != waiting:
			return s.answer(l, nil)
		}
		select {
		case <-l.change:
		case <-ctx.Done():
			return s.answer(l, ctx.Err())
		}
	}
}

// Release implements driver.Session.
func (s *connSession) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	l, err := s.claim(dc)
	if errors.Is(err, driver.ErrSessionLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	l.leaving = true
	s.mu.Unlock()
	err = s.fly(ctx, l, func(ctx context.Context) error { return s.leave(ctx, l) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.left {
		return l.was, nil
	}
	return false, fmt.Errorf("pglock: release %q: %w", dc.Name, err)
}

// leave takes the claim out, once. A statement that waits is cancelled, and what it may have got before is given back like all else:
// the cancel does nothing where it comes too late. Where it cannot be sent, the connection ends.
func (s *connSession) leave(ctx context.Context, l *link) error {
	s.mu.Lock()
	c, left := l.conn, l.left
	blocked := c != nil && c.blocked
	s.mu.Unlock()
	if left {
		return nil
	}
	if blocked {
		if err := c.pg.CancelRequest(ctx); err != nil {
			c.close()
		}
		<-l.decided
	}
	was := false
	if c != nil {
		s.mu.Lock()
		mine := l.state == held
		s.mu.Unlock()
		r := c.call(s.unlock(l), s.spec.TTL)
		was = mine && r.field(0) == "t"
		if r.err != nil || mine && !was {
			c.close() // what it has is not known
			<-c.done
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.left, l.was = true, was
	l.end()
	s.part(l)
	delete(s.claims, l.ID)
	return nil
}
