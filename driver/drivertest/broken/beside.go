package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// beside is a fault with a second session beside each, for the claims that has picks when they are
// first acquired. Nobody renews it.
type beside struct {
	ttl   time.Duration // of the second; 0: that of the first
	apart bool          // it is opened by another process, so that it outlives the first
	has   func(s *session, c driver.Claim, before int) bool

	mu     sync.Mutex
	second map[*session]driver.Session
	stands map[*session]map[string]bool // by ID: in the second
}

// open opens the second session of s.
func (b *beside) open(s *session) {
	spec, memory := s.spec, s.l.memory
	if spec.ID += "-second"; b.ttl > 0 {
		spec.TTL = b.ttl
	}
	if b.apart {
		memory = memory.Share()
	}
	other, err := memory.Open(context.Background(), spec)
	if err != nil {
		panic(err) // the first was just opened
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.second == nil {
		b.second, b.stands = map[*session]driver.Session{}, map[*session]map[string]bool{}
	}
	b.second[s], b.stands[s] = other, map[string]bool{}
}

// other returns the second session of s.
func (b *beside) other(s *session) driver.Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.second[s]
}

// of returns the session that c stands in.
func (b *beside) of(s *session, c driver.Claim) driver.Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, known := b.stands[s][c.ID]
	if !known {
		in = b.has(s, c, len(s.all()))
		b.stands[s][c.ID] = in
	}
	if in {
		return b.second[s]
	}
	return s.Session
}

// besides is such a fault.
func besides(ttl time.Duration, has func(s *session, c driver.Claim, before int) bool) *fault {
	return (&beside{ttl: ttl, has: has}).fault()
}

func (b *beside) fault() *fault {
	return &fault{
		open: b.open,
		acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			return b.of(s, c).Acquire(ctx, c)
		},
		wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			return b.of(s, c).Wait(ctx, c)
		},
		release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			return b.of(s, c).Release(ctx, c)
		},
		requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
			if b.of(s, next) != b.of(s, old) {
				held, err := b.of(s, old).Release(ctx, old)
				if err != nil {
					return driver.Grant{}, false, err
				}
				g, err := b.of(s, next).Acquire(ctx, next)
				return g, held, err
			}
			return b.of(s, old).(driver.Requeuer).Requeue(ctx, old, next)
		},
		close: func(s *session, ctx context.Context) error {
			return errors.Join(s.Session.Close(ctx), b.other(s).Close(ctx))
		},
	}
}
