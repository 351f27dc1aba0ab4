package connlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Hander is a [Conn] that can give a lock back for one that stands in line already.
type Hander interface {
	Conn

	// Hand gives a lock back, provided that another connection waits for it or has it, too: in one request.
	Hand(l Lock, other Conn) (Handed, error)
}

// Handed is what came of a Hand.
type Handed struct {
	Stands bool // the other connection stands in line; if not, nothing was given back
	Had    bool // there was a lock to give back
	Has    bool // the other connection has the lock now
}

// Requeuer is a session whose connections are Handers. It implements driver.Requeuer.
type Requeuer struct{ *Session }

// Requeue implements driver.Requeuer. The next claim goes into the server's line while the old one is still held, on a connection apart, and
// the old one is given back by a request that looks whether the next one is there. So who waits stands before it, and who comes meanwhile
// finds one of the two. The two statements are sent side by side; where the second came first it is repeated.
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
	err = old.Fly(ctx, &s.mu, false, s.Timeout, func(ctx context.Context) error {
		return next.Fly(ctx, &s.mu, true, s.Timeout, func(ctx context.Context) error { return s.requeue(ctx, old, next) })
	})
	if err != nil {
		return driver.Grant{}, false, fmt.Errorf("%s: requeue %q: %w", s.Package, old.Name, err)
	}
	if s.denied(next) {
		return driver.Grant{}, old.Was, nil
	}
	g, err := s.answer(next, nil)
	return g, old.Was, err
}

// denied reports whether the next claim was taken out of the line again since it was not to wait.
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
		s.leave(ctx, old)
		return s.acquire(ctx, next)
	}
	if err := s.begin(ctx, next); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	end, _ := ctx.Deadline()
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		h, err := c.Conn.(Hander).Hand(old.Lock, next.conn.Conn)
		if err != nil || h.Stands && !h.Had { // nobody knows what it has
			s.end(c)
			s.left(old, false)
			return s.queue(ctx, next)
		}
		if h.Stands {
			s.left(old, true)
			s.mu.Lock()
			if next.state == out {
				next.state = waiting
			}
			s.mu.Unlock()
			switch {
			case h.Has:
				<-next.decided // its answer is under way
			case !next.Queue:
				s.mu.Lock()
				next.Depart()
				s.mu.Unlock()
				s.leave(ctx, next)
			}
			return nil
		}
		if !time.Now().Before(end) {
			return context.DeadlineExceeded
		}
		timer.Reset(pause)
		select {
		case <-next.decided:
			s.mu.Lock()
			lost := next.state == gone
			s.mu.Unlock()
			if lost {
				return ErrEnded
			}
		case <-timer.C:
		}
	}
}
