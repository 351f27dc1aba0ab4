package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// The rights of a user who locks are exactly those that it needs: with all of them everything
// works, and without any one of them something does not.
func TestACL_IsExact(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	rights := strings.Fields(redlock.ACL("a/*"))
	for _, rights := range [][]string{rights, strings.Fields(redlock.ACL("b", "*")), append(slices.Clone(rights), "+config|get")} {
		if err := everything(t, s, rights); err != nil {
			t.Errorf("with %q: %v", rights, err)
		}
	}
	for i, right := range rights {
		if !strings.ContainsAny(right[:1], "+~&") || right == "+ping" || right == "+getrange" || right == "+pubsub|numsub" {
			continue // it takes rights away, or see TestACL_Ping of package redislock, or a release just takes the long way without it, or only who waits behind the dead waits longer
		}
		t.Run("without "+right, func(t *testing.T) {
			err := everything(t, s, slices.Delete(slices.Clone(rights), i, i+1))
			t.Logf("%v", err)
			if err == nil {
				t.Errorf("everything works without %s", right)
			}
		})
	}
}

// everything does with locks on one master what can be done, as a user with these rights.
func everything(t *testing.T, s *servertest.Server, rights []string) error {
	t.Helper()
	s.MustDo(t, "FLUSHALL")
	s.MustDo(t, "SCRIPT", "FLUSH")
	s.MustDo(t, append([]string{"ACL", "SETUSER", "locker", "reset", "on", ">pw"}, rights...)...)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var d *redlock.Driver
	var parties [2]driver.Session
	for i := range parties {
		opened, err := driver.OpenURL(ctx, "redlock://locker:pw@"+s.Addr()+"/1?max_ttl=10s")
		if err != nil {
			return err
		}
		defer func() {
			over, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = opened.Close(over)
		}()
		d = opened.(*redlock.Driver) //nolint:forcetypeassert // the scheme is ours
		if parties[i], err = d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: 8 * time.Second}); err != nil {
			return err
		}
	}
	a, b := parties[0], parties[1]
	admin := func(words ...string) func() error { // of the database that the user locks in
		return func() error {
			_, err := s.Do(append([]string{"EVAL", "redis.call('SELECT', 1) return redis.call(unpack(ARGV))", "0"}, words...)...)
			return err
		}
	}
	stands := func(s driver.Session, c driver.Claim, held bool) func() error {
		return func() error {
			g, err := s.Acquire(ctx, c)
			if err == nil && g.Held != held {
				err = fmt.Errorf("acquired: held is %t", g.Held)
			}
			return err
		}
	}
	granted := func(s driver.Session, c driver.Claim) func() error {
		return func() error { _, err := acquire(ctx, s, c); return err }
	}
	renews := func(s driver.Session, lost int) func() error {
		return func() error {
			r, err := s.Renew(ctx)
			if err == nil && len(r.Lost) != lost {
				err = fmt.Errorf("renewed: %d lost", len(r.Lost))
			}
			return err
		}
	}
	leaves := func(s driver.Session, c driver.Claim, wasHeld bool) func() error {
		return func() error {
			held, err := s.Release(ctx, c)
			if err == nil && held != wasHeld {
				err = fmt.Errorf("released: was held %t", held)
			}
			return err
		}
	}
	breaks := func(name string, i int, now bool) func() error {
		return func() error {
			line, err := d.Line(ctx, name)
			if err == nil && len(line.Claims) <= i {
				err = fmt.Errorf("%d claims are shown", len(line.Claims))
			}
			if err == nil {
				err = d.Break(ctx, name, line.Claims[i].PublicID, line.Claims[i].Fence, now)
			}
			return err
		}
	}
	one, two, three, four := mutex("a/turns", true), mutex("a/turns", true), mutex("a/broken", true), mutex("a/broken", true)
	theirs, dead, next, try := mutex("a/theirs", true), mutex("a/dead", true), mutex("a/dead", true), mutex("a/dead", false)
	for i, step := range []func() error{
		// a holder, one behind it, and a turn
		stands(a, one, true), stands(b, two, false), renews(a, 0), renews(b, 0),
		func() error {
			lines, err := d.Lines(ctx, "a/")
			if err == nil && len(lines) != 1 {
				err = fmt.Errorf("listed %+v", lines)
			}
			return err
		},
		leaves(a, one, true), granted(b, two), leaves(b, two, true),
		// one that waits and one that holds are broken
		stands(a, three, true), stands(b, four, false), breaks("a/broken", 1, false), breaks("a/broken", 0, false),
		renews(a, 1), renews(b, 1), leaves(b, four, false), leaves(a, three, false),
		// another program's lock, of which one knows only when it ends, and one whose holder has
		// gone without a word
		admin("SET", "a/theirs", "theirs", "PX", "60000"),
		stands(a, theirs, false), breaks("a/theirs", 0, true), granted(a, theirs), leaves(a, theirs, true),
		stands(a, dead, true), stands(b, next, false), admin("DEL", "a/dead"),
		stands(a, try, false), granted(b, next), leaves(b, next, true),
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// A right that a script needs is missing, which a master says when the script has begun: Redis 7.0
// as an error of no kind. It was answered, so it is not asked again at once.
func TestACL_WhatIsMissingIsAskedForOnce(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	rights := slices.DeleteFunc(strings.Fields(redlock.ACL("a/*")), func(right string) bool { return right == "+zadd" })
	wires, all := make([]*wire.Wire, len(set)), make([]string, len(set))
	for i, server := range set {
		server.MustDo(t, append([]string{"ACL", "SETUSER", "locker", "reset", "on", ">pw"}, rights...)...)
		wires[i] = wire.New(t, server.Addr())
		all[i] = wires[i].Addr()
	}
	rival := session(t, open(t, urlOf(addrs(set))+"?max_ttl=5m"), endlessTTL)
	for _, held := range []bool{true, false} { // the second one teaches the masters the script for a line
		if g, err := rival.Acquire(t.Context(), mutex("a/held", true)); g.Held != held || err != nil {
			t.Fatalf("held %v, %v; want %v", g.Held, err, held)
		}
		everywhere(t, set, "a/held")
	}
	for i, server := range set {
		until(t, 30*time.Second, fmt.Sprintf("in line at master %d", i+1), func() bool {
			if server.MustDo(t, "ZCARD", lineOf("a/held")) == "1" {
				return true
			}
			if _, err := rival.Renew(t.Context()); err != nil { // which has it enter where it did not yet
				t.Fatal(err)
			}
			return false
		})
	}
	d := open(t, "redlock://locker:pw@"+strings.Join(all, ",")+endless)
	s := session(t, d, endlessTTL)
	if g, err := s.Acquire(t.Context(), mutex("a/free", true)); !g.Held || err != nil {
		t.Fatalf("a free name: held %v, %v", g.Held, err)
	}
	until(t, 30*time.Second, "heard everywhere", func() bool { return d.Hears() == 3 }) // as who holds something does
	asked := make([]*atomic.Int32, len(wires))
	for i, w := range wires {
		asked[i] = countAsks(w, "a/held")
	}
	c := mutex("a/held", true)
	if _, err := s.Acquire(t.Context(), c); err == nil || !strings.Contains(err.Error(), "lacks a right") {
		t.Errorf("error %v, want that a right is missing", err)
	}
	for i, n := range asked {
		until(t, 30*time.Second, "answered", func() bool { return redlock.Pending(s, c.ID, i) == 0 })
		if n.Load() != 1 {
			t.Errorf("master %d was asked %d times, want once", i+1, n.Load())
		}
	}
	if _, err := s.Release(t.Context(), c); err != nil {
		t.Errorf("a release: %v", err)
	}
	if _, err := d.Line(t.Context(), "a/held"); err != nil { // each master answers after what it was asked before
		t.Error(err)
	}
	if n := d.Orphans(); n > 0 {
		t.Errorf("at %d masters it is released again and again, although all have answered", n)
	}
}
