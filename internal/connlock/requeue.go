package connlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Hander is a [Conn] that can give a lock back for one that stands in line already.
type Hander interface {
	Conn

	// Hand gives a lock back, provided that another connection waits for it: in one request.
	Hand(ctx context.Context, l Lock, other Conn, then func(Handed, error)) error
}

// Handed is what came of a Hand.
type Handed struct {
	Stands bool // the other connection stands in line; if not, nothing was given back
	Had    bool // there was a lock to give back
	Has    bool // the other connection has the lock now
}

// Requeuer is a session whose connections are Handers. It implements driver.Requeuer.
type Requeuer struct{ *Session }

// Requeue implements driver.Requeuer. The next claim goes into the server's line while the old one
// is held, on a single connection. Then the old one is released, by a request that first looks
// whether the next one stands in line. So everybody who waits stands before the next claim, and a
// newcomer finds one of the two. Both statements are sent at once; if the second was carried out
// first it is repeated.
func (s Requeuer) Requeue(ctx context.Context, oldClaim, nextClaim driver.Claim) (driver.Grant, bool, error) {
	next, err := s.claim(nextClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	old, err := s.claim(oldClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	s.mu.Lock()
	old.Depart()
	s.mu.Unlock()
	err = old.Fly(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error {
		return next.Fly(ctx, &s.mu, true, s.timeout, func(ctx context.Context) error { return s.requeue(ctx, old, next) })
	})
	if err != nil {
		return driver.Grant{}, false, fmt.Errorf("%s: requeue %q: %w", s.config.Package, old.Name, err)
	}
	if s.denied(next) {
		return driver.Grant{}, old.Was, nil
	}
	g, err := s.answer(next, nil)
	return g, old.Was, err
}

// denied reports whether the next claim was released again since it must not wait.
func (s Requeuer) denied(next *claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return next.Left && !next.Queue
}

func (s Requeuer) requeue(ctx context.Context, old, next *claim) error {
	s.mu.Lock()
	c, mine := old.conn, old.state == held
	s.mu.Unlock()
	if !mine {
		return sessions.Aside(ctx, s.timeout, func(ctx context.Context) error {
			if err := s.sendRelease(ctx, old); err != nil {
				return err
			}
			return s.acquire(ctx, next)
		})
	}
	if err := s.beginWait(ctx, next); err != nil {
		return err
	}
	end, _ := ctx.Deadline()
	for looks := 1; ; looks++ {
		switch h, err := s.hand(ctx, c, old, next); {
		case err != nil:
			return err
		case h.Stands && !h.Had:
			return sessions.Aside(ctx, s.timeout, func(ctx context.Context) error { return s.queue(ctx, next) })
		case h.Has: // its answer is under way
			return next.conn.Await(ctx)
		case h.Stands && !next.Queue:
			s.mu.Lock()
			next.Depart()
			s.mu.Unlock()
			return s.sendRelease(ctx, next)
		case h.Stands:
			return nil
		case !time.Now().Before(end):
			return context.DeadlineExceeded
		}
		if err := next.conn.pause(ctx, looks); err != nil {
			return err
		}
		s.mu.Lock()
		st := next.state
		s.mu.Unlock()
		switch st {
		case gone:
			return ErrEnded
		case held: // as the old one: both share the lock, or that was lost
			return s.unlock(ctx, old)
		}
	}
}

// hand releases the old claim if the next one stands in line. If nobody knows what the connection
// has, it says that there was no lock.
func (s Requeuer) hand(ctx context.Context, c *conn, old, next *claim) (Handed, error) {
	var handed Handed
	late := c.Conn.(Hander).Hand(ctx, old.Lock, next.conn.Conn, func(h Handed, err error) {
		if err != nil {
			h = Handed{Stands: true}
		}
		if handed = h; !h.Stands {
			return
		}
		if !h.Had {
			s.closeConn(c)
		}
		s.released(old, h.Had)
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.Had && next.state == out {
			next.state = waiting
		}
	})
	if late != nil {
		return Handed{}, late
	}
	return handed, nil
}
