package redislock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
)

// play is what two processes do with locks.
type play struct {
	ctx   context.Context
	a, b  driver.Session
	d     *redislock.Driver
	admin func(words ...string)
}

func claimOf(name string, kind driver.Kind) driver.Claim {
	c := driver.Claim{Name: name, ID: driver.NewID(), Kind: kind, Weight: driver.All, Limit: driver.All, Queue: true}
	switch kind {
	case driver.Read:
		c.Weight = 1
	case driver.Permit:
		c.Weight, c.Limit = 1, 2
	}
	return c
}

// stands acquires c and checks whether it is held at once.
func (p play) stands(s driver.Session, c driver.Claim, held bool) error {
	g, err := s.Acquire(p.ctx, c)
	if err == nil && g.Held != held {
		err = fmt.Errorf("acquired: held is %t", g.Held)
	}
	return err
}

// granted waits for c until it is held, for less than anybody's time.
func (p play) granted(s driver.Session, c driver.Claim) error {
	ctx, cancel := context.WithTimeout(p.ctx, time.Second)
	defer cancel()
	for {
		if g, err := s.Wait(ctx, c); err != nil || g.Held {
			return err
		}
	}
}

func (p play) leaves(s driver.Session, claims ...driver.Claim) error {
	for _, c := range claims {
		if held, err := s.Release(p.ctx, c); err != nil || !held {
			return fmt.Errorf("released: was held %t: %w", held, err)
		}
	}
	return nil
}

func (p play) renews(s driver.Session, lost int) error {
	r, err := s.Renew(p.ctx)
	if err == nil && len(r.Lost) != lost {
		err = fmt.Errorf("renewed: %d lost", len(r.Lost))
	}
	return err
}

func (p play) mutex() error {
	one, two := claimOf("a/mutex", driver.Mutex), claimOf("a/mutex", driver.Write)
	return first(
		func() error { return p.stands(p.a, one, true) },
		func() error { return p.stands(p.b, two, false) },
		func() error { return p.renews(p.a, 0) },
		func() error { return p.renews(p.b, 0) },
		func() error { return p.leaves(p.a, one) },
		func() error { return p.granted(p.b, two) },
		func() error { return p.leaves(p.b, two) },
	)
}

func (p play) readers() error {
	one, two, write := claimOf("a/rw", driver.Read), claimOf("a/rw", driver.Read), claimOf("a/rw", driver.Write)
	return first(
		func() error { return p.stands(p.a, one, true) },
		func() error { return p.stands(p.b, two, true) },
		func() error { return p.stands(p.a, write, false) },
		func() error { return p.renews(p.a, 0) },
		func() error { return p.leaves(p.a, one) },
		func() error { return p.leaves(p.b, two) },
		func() error { return p.granted(p.a, write) },
		func() error { return p.leaves(p.a, write) },
	)
}

func (p play) permits() error {
	one, two, three := claimOf("a/sem", driver.Permit), claimOf("a/sem", driver.Permit), claimOf("a/sem", driver.Permit)
	return first(
		func() error { return p.stands(p.a, one, true) },
		func() error { return p.stands(p.b, two, true) },
		func() error { return p.stands(p.b, three, false) },
		func() error { return p.leaves(p.a, one) },
		func() error { return p.granted(p.b, three) },
		func() error { return p.renews(p.b, 0) },
		func() error { return p.leaves(p.b, two, three) },
	)
}

func (p play) requeue() error {
	one, two := claimOf("a/again", driver.Mutex), claimOf("a/again", driver.Mutex)
	return first(
		func() error { return p.stands(p.a, one, true) },
		func() error {
			g, held, err := p.a.(driver.Requeuer).Requeue(p.ctx, one, two)
			if err == nil && (!held || !g.Held) {
				err = fmt.Errorf("requeued: %t, %t", held, g.Held)
			}
			return err
		},
		func() error { return p.leaves(p.a, two) },
	)
}

// breaking takes a claim that holds and one that waits away from their owners, as they are listed.
func (p play) breaking() error {
	one, two, reader := claimOf("a/broken", driver.Mutex), claimOf("a/broken", driver.Mutex), claimOf("a/read", driver.Read)
	return first(
		func() error { return p.stands(p.a, one, true) },
		func() error { return p.stands(p.b, two, false) },
		func() error { return p.stands(p.b, reader, true) },
		func() error {
			lines, err := p.d.Lines(p.ctx, "a/")
			if err != nil || len(lines) != 2 || len(lines[0].Claims) != 2 || len(lines[1].Claims) != 1 {
				return fmt.Errorf("listed %+v: %w", lines, err)
			}
			for _, h := range []driver.Holder{lines[0].Claims[0], lines[0].Claims[1], lines[1].Claims[0]} {
				name := "a/broken"
				if h.Kind == driver.Read {
					name = "a/read"
				}
				if err := p.d.Break(p.ctx, name, h.PublicID, h.Fence, false); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { return p.renews(p.a, 1) },
		func() error { return p.renews(p.b, 2) },
		func() error { _, err := p.a.Release(p.ctx, one); return err },
		func() error { _, err := p.b.Release(p.ctx, two); return err },
		func() error { _, err := p.b.Release(p.ctx, reader); return err },
	)
}

// foreign breaks the lock of another program.
func (p play) foreign() error {
	one := claimOf("a/foreign", driver.Mutex)
	p.admin("SET", "a/foreign", "theirs", "PX", "60000")
	return first(
		func() error { return p.stands(p.a, one, false) },
		func() error {
			line, err := p.d.Line(p.ctx, "a/foreign")
			if err == nil {
				err = p.d.Break(p.ctx, "a/foreign", line.Claims[0].PublicID, 0, true)
			}
			return err
		},
		func() error { return p.granted(p.a, one) },
		func() error { return p.leaves(p.a, one) },
	)
}

// vanished has a holder go without a word while another waits.
func (p play) vanished() error {
	one, two, three := claimOf("a/gone", driver.Mutex), claimOf("a/gone", driver.Mutex), claimOf("a/gone", driver.Mutex)
	three.Queue = false
	return first(
		func() error { return p.stands(p.a, one, true) },
		func() error { return p.stands(p.b, two, false) },
		func() error { p.admin("DEL", "a/gone"); return nil },
		func() error { return p.stands(p.a, three, false) },
		func() error { return p.granted(p.b, two) },
		func() error { return p.leaves(p.b, two) },
		func() error { return p.renews(p.a, 1) },
		func() error { _, err := p.a.Release(p.ctx, one); return err },
	)
}

// evicted has a line go while somebody waits in it.
func (p play) evicted() error {
	one, two := claimOf("a/evicted", driver.Mutex), claimOf("a/evicted", driver.Mutex)
	return first(
		func() error { return p.stands(p.a, one, true) },
		func() error { return p.stands(p.b, two, false) },
		func() error { p.admin("DEL", "il:{a/evicted}:line:a/evicted"); return nil },
		func() error { return p.renews(p.b, 1) },
		func() error { _, err := p.b.Release(p.ctx, two); return err },
		func() error { return p.leaves(p.a, one) },
	)
}

// first runs the steps until one fails.
func first(steps ...func() error) error {
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}
