package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// sharers is many claims that share one name, and what a step of one of them
// costs the server, by its own count: the others do nothing meanwhile.
type sharers struct {
	kind driver.Kind
	n    int
}

// held is a claim that is held, and whose it is.
type held struct {
	s driver.Session
	c driver.Claim
}

// steps is how many of each are measured.
const steps = 200

func (x sharers) run(ctx context.Context, s scale) (_ sample, err error) {
	at, err := openSite(ctx, "redis")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	var sessions [4]driver.Session
	for i := range sessions {
		d, err := driver.OpenURL(ctx, at.redis[0].URL())
		if err != nil {
			return nil, err
		}
		defer func() { _ = d.Close(ctx) }() // the server ends with the run
		if sessions[i], err = d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour}); err != nil {
			return nil, err
		}
	}
	n := max(10, x.n/s.shrink)
	claim := func() driver.Claim {
		c := driver.Claim{Name: contestName, ID: driver.NewID(), Kind: x.kind, Weight: 1, Limit: driver.All, Queue: true}
		if x.kind == driver.Permit {
			c.Limit = n
		}
		return c
	}
	hold := func(s driver.Session, c driver.Claim) error {
		if g, err := s.Acquire(ctx, c); err != nil || !g.Held {
			return fmt.Errorf("bench: one of %d sharers: held %v, %w", n, g.Held, err)
		}
		return nil
	}
	// Whose claims leave stand all along the line, since to leave it takes
	// longer from the middle than from an end.
	few := min(steps, n/3)
	var pairs, handoffs []held
	for i := range n {
		h := held{sessions[0], claim()}
		switch due := (i+1)*few/n > i*few/n; {
		case i == n-1:
			h.s = sessions[3]
		case due:
			h.s = sessions[1]
			pairs = append(pairs, h)
		case len(handoffs) < len(pairs):
			h.s = sessions[2]
			handoffs = append(handoffs, h)
		}
		if err := hold(h.s, h.c); err != nil {
			return nil, err
		}
	}
	out := sample{}
	measure := func(m metric, step func() error) error {
		before, err := at.look()
		if err != nil {
			return err
		}
		for range steps {
			if err := step(); err != nil {
				return err
			}
		}
		after, err := at.look()
		out[m] = after.since(before).scripted / steps
		return err
	}
	err = errors.Join(
		measure(renewalTime, func() error {
			_, err := sessions[3].Renew(ctx)
			return err
		}),
		measure(pairTime, func() error {
			leaves := pairs[0]
			if _, err := leaves.s.Release(ctx, leaves.c); err != nil {
				return err
			}
			next := held{leaves.s, claim()}
			pairs = append(pairs[1:], next)
			return hold(next.s, next.c)
		}),
	)
	if err != nil || x.kind != driver.Permit {
		return out, err
	}
	return out, measure(handoffTime, func() error { // all permits are taken: the next one waits, and gets this one
		leaves, next := handoffs[0], held{sessions[1], claim()}
		if leaves.s == next.s {
			next.s = sessions[2]
		}
		if _, err := next.s.Acquire(ctx, next.c); err != nil {
			return err
		}
		if _, err := leaves.s.Release(ctx, leaves.c); err != nil {
			return err
		}
		for g := (driver.Grant{}); !g.Held; {
			var err error
			if g, err = next.s.Wait(ctx, next.c); err != nil {
				return err
			}
		}
		handoffs = append(handoffs[1:], next)
		return nil
	})
}

// listing is a list of who holds, of one name that is held among many that
// were.
type listing struct {
	old  int
	scan bool // the keys only
}

func (x listing) run(ctx context.Context, s scale) (_ sample, err error) {
	at, err := openSite(ctx, "redis")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	d, err := driver.OpenURL(ctx, at.redis[0].URL())
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close(ctx) }() // the server ends with the run
	session, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour})
	if err != nil {
		return nil, err
	}
	one := driver.Claim{Name: contestName, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
	if g, err := session.Acquire(ctx, one); err != nil || !g.Held {
		return nil, fmt.Errorf("bench: held %v, %w", g.Held, err)
	}
	const fill = `for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'il:{' .. ARGV[2] .. i .. '}:fence:' .. ARGV[2] .. i, i * 64) end`
	old, part := x.old/s.shrink, 10_000
	for i := 0; i < old; i += part {
		if _, err := at.redis[0].Do("EVAL", fill, "0", strconv.Itoa(min(part, old-i)), fmt.Sprintf("old/%d/", i)); err != nil {
			return nil, err
		}
	}
	before, err := at.look()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if x.scan {
		for cursor := "0"; cursor != ""; {
			if cursor, err = scanOnce(at, cursor); err != nil {
				return nil, err
			}
		}
	} else if lines, err := d.(driver.Inspector).Lines(ctx, ""); err != nil || len(lines) != 1 {
		return nil, fmt.Errorf("bench: %d lines, %w", len(lines), err)
	}
	took := time.Since(start)
	after, err := at.look()
	did := after.since(before)
	return sample{latency: took.Seconds() * 1e3, serverTime: did.cpu * 1e3, scripts: did.scripts}, err
}

// scanOnce asks for a page of the counters, and returns where the next one
// begins: "" where there is none.
func scanOnce(at *site, cursor string) (string, error) {
	const count = `local r = redis.call('SCAN', ARGV[1], 'MATCH', 'il:{*}:fence:*', 'COUNT', 1000) return r[1]`
	next, err := at.redis[0].Do("EVAL", count, "0", cursor)
	if next == "0" {
		next = ""
	}
	return next, err
}
