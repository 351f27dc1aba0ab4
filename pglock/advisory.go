package pglock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// words are the statements for a claim: what takes the lock if it is free, what waits for it, what shows that it waits or has it, and what
// gives it back. The first two answer a token, 0 where there is none and -1 where the lock was not free; the last, whether there was
// anything to give back.
type words struct{ try, wait, shows, leave string }

func (s *connSession) words(l *link) words {
	if s.d.rows {
		return s.rowWords(l)
	}
	shared, token := "_shared", "0"
	if s.fenced(l) {
		token = "nextval('" + s.d.in + "token')"
	}
	if l.Kind.Exclusive() {
		shared = ""
	}
	return words{
		try:   fmt.Sprintf("select case when pg_try_advisory_lock%s(%v) then %s else -1 end", shared, l.key, token),
		wait:  fmt.Sprintf("select pg_advisory_lock%s(%v); select %s", shared, l.key, token),
		shows: "select count(*) from pg_locks l where l.pid = %s and " + l.key.locks(),
		leave: fmt.Sprintf("select pg_advisory_unlock%s(%v)", shared, l.key),
	}
}

// fenced reports whether a claim draws tokens.
func (s *connSession) fenced(l *link) bool { return s.d.fence && l.Kind.Exclusive() }

// Acquire implements driver.Session.
func (s *connSession) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("pglock: %w: %w", driver.ErrNotSent, err)
	}
	l, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	if err = s.fly(ctx, l, s.acquire); err != nil {
		err = fmt.Errorf("pglock: lock %q: %w", dc.Name, err)
	}
	return s.answer(l, err)
}

func (s *connSession) acquire(ctx context.Context, l *link) error {
	s.mu.Lock()
	st, c := l.state, l.conn
	l.unheard = l.unheard || st == waiting
	if l.leaving {
		st = gone
	}
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
	case c != nil: // asked for before, and nobody knows its place
		return s.queue(ctx, l)
	}
	got, err := s.try(ctx, l)
	if errors.Is(err, errEnded) { // for having been idle, perhaps
		got, err = s.try(ctx, l)
	}
	if err != nil || got || !l.Queue {
		return err
	}
	return s.queue(ctx, l)
}

// try takes what is free, in one round trip. What another claim of the session excludes is not asked for.
func (s *connSession) try(ctx context.Context, l *link) (bool, error) {
	s.mu.Lock()
	for _, other := range s.claims {
		if other.state == held && other.key == l.key && (other.Kind.Exclusive() || l.Kind.Exclusive()) {
			s.mu.Unlock()
			return false, nil
		}
	}
	s.mu.Unlock()
	if s.d.rows {
		if there, err := s.prepare(ctx, l); err != nil || !there {
			return false, err
		}
	}
	c, err := s.take(ctx, l, s.d.rows)
	if err != nil {
		return false, err
	}
	w := s.words(l)
	r := s.draw(l, c.call(w.try, s.spec.TTL))
	got := r.err == nil && r.field() != "" && r.field() != "-1"
	switch {
	case errors.Is(r.err, errEnded):
		<-c.done
	case r.err != nil:
		c.ask(w.leave) // the lock was taken, perhaps, and then there was no token
		r.err = classify(r.err, &s.d.options)
	case !got && s.d.rows:
		c.ask(w.leave) // a transaction was begun
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got {
		s.admit(l, r)
		return true, nil
	}
	s.part(l)
	return false, r.err
}

// admit moves the claim to held, if its connection still is there. s.mu is held.
func (s *connSession) admit(l *link, r reply) {
	if l.conn.ended() != nil {
		s.end(l)
		return
	}
	l.move(held, uint64(number([]byte(r.field())))) //nolint:gosec // drawn by us
}

// queue puts a claim into the server's line, on a connection apart. It has its place when the server's table of locks shows it: from then
// on it is ahead of who comes later. After an error nobody knows.
func (s *connSession) queue(ctx context.Context, l *link) error {
	if l.conn == nil {
		s.mu.Lock()
		s.waiting++
		full := s.waiting > s.d.options.MaxWaiting
		s.mu.Unlock()
		if full {
			s.unwait()
			return fmt.Errorf("%w: %w: %d claims of this session wait on a connection each: raise MaxWaiting, or use technique rows", driver.ErrNotSent, driver.ErrUnable, s.d.options.MaxWaiting)
		}
		c, err := s.take(ctx, l, true)
		if err != nil {
			s.unwait()
			return err
		}
		s.mu.Lock()
		c.blocked, l.decided = true, make(chan struct{})
		s.mu.Unlock()
		go s.decide(l, c, c.ask(s.words(l).wait))
	}
	look := fmt.Sprintf(s.words(l).shows, l.conn.pid)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		c, err := s.take(ctx, nil, false)
		if err != nil {
			return fmt.Errorf("its place in line is not known: %s", err.Error()) // nothing that is certain
		}
		r := c.call(look, s.spec.TTL)
		s.mu.Lock()
		if l.state == out && r.err == nil && r.field() != "0" {
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
			return ctx.Err()
		}
		timer.Stop()
	}
}

func (s *connSession) unwait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
}

// decide takes in the answer to a statement that waits.
func (s *connSession) decide(l *link, c *conn, answer <-chan reply) {
	r := s.draw(l, <-answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	c.blocked = false
	close(l.decided)
	switch {
	case r.err == nil && r.field() != "":
		s.admit(l, r)
	case l.state != gone:
		if s.end(l); !l.leaving {
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
		case st == out, st == held && unheard: // the last Renew passed over it, and its time had begun before, perhaps
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
	err = s.fly(ctx, l, s.leave)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.left {
		return l.was, nil
	}
	return false, fmt.Errorf("pglock: release %q: %w", dc.Name, err)
}

// leave takes the claim out, once. A statement that waits is cancelled, and what it may have got before is given back like all else: a
// cancel that comes too late does nothing. Where none can be sent, or nobody knows what a connection has, that ends.
func (s *connSession) leave(ctx context.Context, l *link) error {
	s.mu.Lock()
	c := l.conn
	blocked := c != nil && c.blocked
	s.mu.Unlock()
	if blocked {
		if err := c.pg.CancelRequest(ctx); err != nil {
			c.close()
		}
		<-l.decided
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil && !l.left {
		mine := l.state == held
		s.mu.Unlock()
		r := c.call(s.words(l).leave, s.spec.TTL)
		given := r.err == nil && r.field() == "t"
		if r.err != nil || mine && !given {
			c.close()
			<-c.done
		}
		s.mu.Lock()
		l.was = mine && given
		s.part(l)
	}
	l.left = true
	l.move(gone, 0)
	delete(s.claims, l.ID)
	return nil
}
