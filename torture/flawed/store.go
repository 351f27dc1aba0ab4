package flawed

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// store implements driver.Driver.
type store struct {
	lock   lock
	traits driver.Traits
	close  func()
}

// Traits implements driver.Driver: mutexes, and nothing else but permits where there are several
// masters.
func (s *store) Traits() driver.Traits { return s.traits }

// Close implements driver.Driver.
func (s *store) Close(context.Context) error {
	s.close()
	return nil
}

// Open implements driver.Driver. A session is nothing at the server: each key has a time of its
// own.
func (s *store) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	ttl := max(spec.TTL.Truncate(time.Millisecond), s.traits.MinTTL)
	if most := s.traits.MaxTTL; most > 0 && ttl > most {
		return nil, fmt.Errorf("flawed: a TTL of %v: want %v at most, which is max_ttl: %w", ttl, most, driver.ErrRefused)
	}
	return &session{lock: s.lock, ttl: ttl, permits: s.traits.Counted, claims: map[string]*claim{}}, nil
}
