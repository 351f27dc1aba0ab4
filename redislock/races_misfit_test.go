package redislock_test

import (
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// The holder of a line has run out of time, and the head of the line shares its turn with its like.
// A permit comes, which does not go with those: it is refused, after it has let in the head. The
// head stays in.
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
	if g, err := d.session.Acquire(t.Context(), permit(name, 2)); !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("a permit among locks: %+v, %v; want %v", g, err, driver.ErrRefused)
	}
	granted(t, waiting)
	s.stands(t, head, next)
}

// The same among permits, where two are let in around one that does not fit. The run that refuses
// the lock goes along the line twice, and the second time behind the first of them alone: it meets
// the other one, which it has just let in.
func misfitAtExpiredPermits(s scene) {
	t := s.T
	a, b, c, d := s.actor(t), s.actor(t), s.actor(t), s.actor(t)
	name := s.name("misfits")
	all := permit(name, 3)
	all.Weight = 3
	a.hold(all)
	first, narrow, wide := b.queue(permit(name, 3)), b.queue(permit(name, 1)), c.queue(permit(name, 3))
	waits, waitsToo := b.waiting(first), c.waiting(wide)
	if err := s.raw.Del(t.Context(), name).Err(); err != nil {
		t.Fatal(err)
	}
	if g, err := d.session.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("a lock among permits: %+v, %v; want %v", g, err, driver.ErrRefused)
	}
	granted(t, waits)
	granted(t, waitsToo)
	st := s.sound(t, name)
	if held, want := st.held(), []string{first.ID, wide.ID}; !slices.Equal(held, want) || !slices.Equal(st.waits(), []string{narrow.ID}) {
		t.Fatalf("hold %v and wait %v; want %v and %s\n%s", held, st.waits(), want, narrow.ID, st)
	}
}
