//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redissonlock"
)

// unseen are rights whose lack nobody sees on one server, and why.
var unseen = map[string]string{
	"+select":             "another database than 0",
	"+unsubscribe":        "a channel that nobody wants any more stays subscribed",
	"+ssubscribe":         "Cluster",
	"+sunsubscribe":       "Cluster",
	"+spublish":           "Cluster",
	"+pubsub|shardnumsub": "Cluster",
	"+cluster|slots":      "Cluster",
}

// The rights of a user who locks are exactly those that it needs: with all of them everything
// works, and without any one of them something does not.
func TestACLIsExact(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, redistest.Durable...)
	all := strings.Fields(redissonlock.ACL("b", "*", "c"))
	if err := everything(t, s, all, "a/b"); err != nil {
		t.Errorf("with %q: %v", all, err)
	}
	for _, c := range []struct {
		pattern, name string
		spare         []string // rights for names with braces, or without
	}{
		{"a/*", "a/b", []string{"~redisson_lock_*:a/*", "~a/*:*:rwlock_timeout:*"}},
		{"x{y}z", "x{y}z", []string{"~redisson_lock_*:{x{y}z}", "~{x{y}z}:*:rwlock_timeout:*"}},
	} {
		rights := strings.Fields(redissonlock.ACL(c.pattern))
		if err := everything(t, s, rights, c.name); err != nil {
			t.Fatalf("with %q: %v", rights, err)
		}
		if err := everything(t, s, rights, "other"); err == nil {
			t.Errorf("a name that does not match %q can be locked", c.pattern)
		}
		for i, right := range rights {
			if !strings.ContainsAny(right[:1], "+~&") || unseen[right] != "" || slices.Contains(c.spare, right) {
				continue // it takes rights away, or nobody sees it
			}
			if err := everything(t, s, slices.Delete(slices.Clone(rights), i, i+1), c.name); err == nil {
				t.Errorf("%q: everything works without %s", c.name, right)
			}
		}
	}
}

// everything does everything that a driver can, as a user with these rights.
func everything(t *testing.T, s *servertest.Server, rights []string, name string) error {
	t.Helper()
	for _, words := range [][]string{
		{"FLUSHALL"},
		{"SCRIPT", "FLUSH"},
		{"RPUSH", "redisson_lock_queue:{" + name + "}", "dead:1"},
		{"ZADD", "redisson_lock_timeout:{" + name + "}", "1", "dead:1"},
		{"RPUSH", "redisson_lock_queue:" + name, "dead:1"},
		{"ZADD", "redisson_lock_timeout:" + name, "1", "dead:1"},
		{"ACL", "DELUSER", "locker"},
		append([]string{"ACL", "SETUSER", "locker", "on", ">pw"}, rights...),
	} {
		s.MustDo(t, words...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var opened []driver.Session
	var d driver.Driver
	for range 2 {
		var err error
		d, err = driver.OpenURL(ctx, "redisson://locker:pw@"+s.Addr())
		if err != nil {
			return err
		}
		defer func() { _ = d.Close(context.Background()) }()
		if d.Traits().Survives.Restart != true {
			return errors.New("INFO is not answered")
		}
		session, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			return err
		}
		opened = append(opened, session)
	}
	for _, kinds := range [][2]driver.Kind{{driver.Mutex, driver.Mutex}, {driver.Write, driver.Read}, {driver.Read, driver.Write}, {driver.Read, driver.Read}} {
		one, two := claimOf(kinds[0], name), claimOf(kinds[1], name)
		two.Queue = true
		if err := meet(ctx, d, opened, one, two); err != nil {
			return fmt.Errorf("%v and %v: %w", kinds[0], kinds[1], err)
		}
	}
	return nil
}

// meet has one hold, two come, and both leave.
func meet(ctx context.Context, d driver.Driver, s []driver.Session, one, two driver.Claim) error {
	if _, err := s[0].Acquire(ctx, one); err != nil {
		return err
	}
	if _, err := s[1].Acquire(ctx, two); err != nil {
		return err
	}
	for _, session := range s {
		if _, err := session.Renew(ctx); err != nil {
			return err
		}
	}
	look := d.(driver.Inspector)
	if lines, err := look.Lines(ctx, one.Name); err != nil || len(lines) != 1 {
		return fmt.Errorf("%d lines: %w", len(lines), err)
	}
	if err := look.Break(ctx, one.Name, driver.PublicID(driver.NewID()), 0, true); !errors.Is(err, driver.ErrRefused) {
		return err
	}
	if held, err := s[0].Release(ctx, one); err != nil || !held {
		return fmt.Errorf("released, held %t: %w", held, err)
	}
	for held := false; !held; {
		g, err := s[1].Wait(ctx, two)
		if err != nil {
			return err
		}
		held = g.Held
	}
	if held, err := s[1].Release(ctx, two); err != nil || !held {
		return fmt.Errorf("released, held %t: %w", held, err)
	}
	return nil
}

// On a Cluster the same rights are enough, with messages of the shard.
func TestACLOnACluster(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 2, 0, redistest.Durable...)
	for _, node := range c.Nodes {
		if _, err := node.Do(append([]string{"ACL", "SETUSER", "locker", "on", ">pw"}, strings.Fields(redissonlock.ACL("a/*"))...)...); err != nil {
			t.Fatal(err)
		}
	}
	var opened []driver.Session
	var d driver.Driver
	for range 2 {
		var err error
		d, err = driver.OpenURL(t.Context(), "redisson+cluster://locker:pw@"+strings.TrimPrefix(c.URL(), "redis+cluster://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ages})
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, session)
	}
	for _, name := range []string{"a/1", "a/2", "a/3", "a/4"} { // on both masters
		one, two := claimOf(driver.Mutex, name), claimOf(driver.Mutex, name)
		two.Queue = true
		if err := meet(t.Context(), d, opened, one, two); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n, err := c.Owner(c.Slot(name)).Do("PUBSUB", "SHARDNUMSUB", "redisson_lock__channel:{"+name+"}"); err != nil || !strings.HasSuffix(strings.TrimSpace(n), "1") {
			t.Errorf("%s: listening to messages of the shard are %q, %v: want one", name, n, err)
		}
	}
}
