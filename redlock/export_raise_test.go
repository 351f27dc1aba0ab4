package redlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Raise raises a claim that is held on all its masters once more, in a call that began at since,
// and returns from when on each has it then.
func Raise(ctx context.Context, of driver.Session, id string, since time.Time) (from []time.Time, err error) {
	s := of.(*session) //nolint:forcetypeassert // there is no other one
	f := newInflight(since)
	s.mu.Lock()
	c := s.claims[id]
	for _, n := range s.d.nodes {
		s.confirm(c, n, f)
	}
	s.mu.Unlock()
	err = s.await(ctx, f, func() bool { return f.out == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.nodes {
		from = append(from, c.nodes[i].from)
	}
	return from, err
}
