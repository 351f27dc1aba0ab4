package redislock_test

import (
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// The holder of a line has run out of time, and the head of the line shares its turn with its like. A permit comes, which
// does not go with those: it is refused, after it has let in the head. The head stays in.
func misfitAtExpiredHolder(s scene) {
	t := s.T
	a, b, c, d := s.actor(t), s.actor(t), s.actor(t), s.actor(t)
	name := s.name("misfit")
	a.hold(mutex(name))
	head, next := b.queue(reader(name)), c.queue(mutex(name))
	waiting := b.waiting(head)
	if err := s.raw.Del(t.Context(), name).Err(); err != nil {
		t.Fatal(err)
	}
	permit := driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Permit, Weight: 1, Limit: 2, Queue: true}
	if g, err := d.session.Acquire(t.Context(), permit); !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("a permit among locks: %+v, %v; want %v", g, err, driver.ErrRefused)
	}
	granted(t, waiting)
	s.stands(t, head, next)
}
