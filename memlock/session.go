package memlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// session is one liveness. Its places are what the session knows of its claims, which notices, replies and Renew move
// forward; what is true stands in the store's lines. Everything is guarded by store.mu.
type session struct {
	driver *Driver
	store  *store
	spec   driver.Spec
	ttl    time.Duration

	renewed time.Time
	places  map[string]*place
	over    bool
	done    chan struct{} // closed when the session is over
	nudge   chan struct{}

	losing chan struct{} // full while somebody sends on lost or closes it: a mutex that a bubble of synctest can wait for
	lost   chan driver.Loss
}

// place is one claim as its session knows it.
type place struct {
	name     string
	acquired time.Time
	granted  driver.Grant
	err      error         // ErrGone or ErrBroken, once that is known
	released bool          // a Release was called and not answered
	woken    chan struct{} // holds a token while Wait should look again
}

// Valid implements driver.Session.
func (s *session) Valid() time.Duration { return s.ttl }

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return call(ctx, s, func() (driver.Grant, error) { return s.acquire(c) })
}

func (s *session) acquire(c driver.Claim) (driver.Grant, error) {
	e := s.store.at(c.Name)
	if p := s.places[c.ID]; p != nil && p.err != nil {
		return driver.Grant{}, p.err
	}
	i := e.Find(c.ID)
	if i < 0 {
		if err := s.store.personality.admits(c); err != nil {
			return driver.Grant{}, err
		}
		mine := line.New(s.spec.ID, c)
		if err := e.Admits(mine); err != nil {
			return driver.Grant{}, err
		}
		if !c.Queue && !e.Fits(mine) {
			return e.Denied(s.store.describe), nil
		}
		s.places[c.ID] = &place{name: c.Name, acquired: time.Now(), woken: make(chan struct{}, 1)}
		if s.store.personality.NoOrder {
			e.JoinFirst(mine, time.Now())
		} else {
			e.Join(mine, time.Now())
		}
		s.store.settle(e)
		i = e.Find(c.ID)
	}
	p := s.places[c.ID]
	p.acquired = time.Now()
	p.granted = e.Grant(i, s.store.describe)
	return p.granted, nil
}

// Wait implements driver.Session: it returns what notices, replies and renewals have made known, and does not look at
// the line itself, as a driver over a wire could not.
func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	for first := true; ; first = false {
		s.store.mu.Lock()
		p := s.places[c.ID]
		switch {
		case s.over:
			s.store.mu.Unlock()
			return driver.Grant{}, driver.ErrSessionLost
		case p == nil:
			s.store.mu.Unlock()
			return driver.Grant{}, driver.ErrGone
		case p.err != nil || p.granted.Held || !first:
			granted, err := p.granted, p.err
			s.store.mu.Unlock()
			if werr := s.driver.wire.receive(ctx); werr != nil {
				return driver.Grant{}, werr
			}
			return granted, err
		}
		woken := p.woken
		s.store.mu.Unlock()
		select {
		case <-ctx.Done():
			return driver.Grant{}, ctx.Err()
		case <-woken:
		}
	}
}

// Release implements driver.Session.
func (s *session) Release(ctx context.Context, c driver.Claim) (bool, error) {
	held, err := call(ctx, s, func() (bool, error) { return s.release(c), nil })
	if err != nil {
		s.unanswered(c)
	}
	return held, err
}

// unanswered notes on this side of the wire that the release of c may not have arrived, for a Renew to make up for it.
func (s *session) unanswered(c driver.Claim) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if p := s.places[c.ID]; p != nil {
		p.released = true
	}
}

func (s *session) release(c driver.Claim) bool {
	e := s.store.at(c.Name)
	found, held := e.Leave(c.ID)
	s.wake(c.ID)
	delete(s.places, c.ID)
	if found {
		s.store.settle(e)
	}
	return held
}

// Requeue implements driver.Requeuer.
func (s *session) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, held bool, err error) {
	g, err = call(ctx, s, func() (driver.Grant, error) {
		held = s.release(old)
		return s.acquire(next)
	})
	return g, held && err == nil, err
}

// Renew implements driver.Session.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	return call(ctx, s, func() (driver.Renewal, error) {
		r, now := driver.Renewal{Valid: s.ttl}, time.Now()
		late := !s.renewed.Add(s.ttl).After(now) // else no claim's time can be over
		for id, p := range s.places {
			e := s.store.lines[p.name]
			if late {
				s.store.expire(e) // before the renewal: what is over stays over
			}
			switch {
			case p.released:
				s.release(driver.Claim{Name: p.name, ID: id})
			case p.err != nil:
				r.Lost = append(r.Lost, driver.Loss{ID: id, Err: p.err})
			case !p.granted.Held:
				if i := e.Find(id); i >= 0 && e.Claims[i].Held {
					p.granted = driver.Grant{Held: true, Fence: e.Claims[i].Fence}
					s.wake(id)
				}
			}
		}
		s.renewed = now
		return r, nil
	})
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	_, err := call(ctx, s, func() (struct{}, error) {
		s.end()
		return struct{}{}, nil
	})
	if errors.Is(err, driver.ErrSessionLost) {
		return nil
	}
	return err
}

// Lost implements driver.LossNotifier.
func (s *session) Lost() <-chan driver.Loss { return s.lost }

// Nudge implements driver.Nudger.
func (s *session) Nudge() <-chan struct{} { return s.nudge }

// end takes the session out of the store with all its claims.
func (s *session) end() {
	if s.over {
		return
	}
	s.over = true
	close(s.done)
	for id, p := range s.places {
		e := s.store.lines[p.name]
		e.Leave(id)
		s.store.settle(e)
		s.wake(id)
	}
	delete(s.store.sessions, s.spec.ID)
	s.losing <- struct{}{} // a sender gives up as soon as done is closed
	close(s.lost)
	<-s.losing
}

// notice tells the session that c is granted, in the manner of the store's personality.
func (s *session) notice(c line.Claim) {
	p := s.places[c.ID]
	if p == nil || s.store.personality.Notices == Lost {
		return
	}
	p.granted = driver.Grant{Held: true, Fence: c.Fence}
	s.wake(c.ID)
	if s.store.personality.Notices == Doubled {
		time.AfterFunc(time.Millisecond, func() {
			s.store.mu.Lock()
			defer s.store.mu.Unlock()
			s.wake(c.ID)
		})
	}
}

// forget records that the claim left the line, or is broken, although nobody here released it.
func (s *session) forget(id string, why error) {
	p := s.places[id]
	if p == nil || p.err != nil || s.over {
		return
	}
	p.err = why
	s.wake(id)
}

func (s *session) wake(id string) {
	if p := s.places[id]; p != nil {
		select {
		case p.woken <- struct{}{}:
		default:
		}
	}
}
