//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/redistest"
)

// Locks of Redisson that tell nobody, or only their own kind, are found free by a renewal. A fair
// lock with a line refuses ours, whether it came before or while ours waited; ours leaves the line
// alone.
func TestRedissonThatDoesNotTell(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	client := m.open(t, 3*time.Second)
	for _, kind := range []foreigntest.Kind{foreigntest.RedissonSpin, foreigntest.RedissonFair} {
		theirs := m.theirs(t, kind, string(kind), ages)
		theirs.MustLock(t, 0)
		waits := taking(t, client, mutexes, string(kind))
		m.listened(t, string(kind))
		theirs.MustUnlock(t)
		got := within(t, "ours, by a renewal", waits)
		if got.err != nil {
			t.Fatal(got.err)
		}
		released(t, got.lease)
	}
	const name = "a fair line"
	holder, waiter := m.theirs(t, foreigntest.RedissonFair, name, ages), m.theirs(t, foreigntest.RedissonFair, name, ages)
	holder.MustLock(t, 0)
	waits := taking(t, client, mutexes, name)
	m.listened(t, name)
	line := locking(waiter)
	until(t, "theirs does not wait", func() bool { return m.do(t, name, "LLEN", "redisson_lock_queue:{"+name+"}") == "1" })
	if got := within(t, "our refusal", waits); !errors.Is(got.err, driver.ErrRefused) || !strings.Contains(got.err.Error(), "fair lock") {
		t.Errorf("ours waits for a fair lock in whose line another stands: %v, want %v", got.err, driver.ErrRefused)
	}
	if shown := redistest.Claims(t, m.url, name); len(shown) != 2 || !shown[0].Held || shown[1].Held || !shown[1].Foreign || !strings.Contains(shown[1].Note, "fair") {
		t.Errorf("the line is shown as %+v, want the holder and one of theirs that waits", shown)
	}
	holder.MustUnlock(t)
	if err := within(t, "their fair waiter", line); err != nil {
		t.Error(err)
	}
	waiter.MustUnlock(t)
}

// Who holds with Redisson is shown, with its holds, and can be broken at once alone.
func TestRedissonIsShownAndBroken(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	client := m.open(t, ages)
	d := byURL(t, m.node.Addr())
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	look := d.(driver.Inspector)
	for _, p := range []struct {
		theirs foreigntest.Kind
		kind   driver.Kind
		ours   shape
	}{
		{foreigntest.RedissonLock, driver.Mutex, mutexes},
		{foreigntest.RedissonWrite, driver.Write, readers},
		{foreigntest.RedissonRead, driver.Read, writers},
	} {
		name := "shown " + string(p.theirs)
		theirs := m.theirs(t, p.theirs, name, ages)
		field := theirs.MustLock(t, 0)
		m.do(t, name, "HINCRBY", name, field, "1") // entered twice
		if p.kind == driver.Read {
			m.do(t, name, "SET", "{"+name+"}:"+field+":rwlock_timeout:2", "1", "PX", "60000")
		}
		lines, err := look.Lines(t.Context(), "shown ")
		if err != nil || len(lines) != 1 || lines[0].Name != name || len(lines[0].Claims) != 1 {
			t.Fatalf("Lines: %+v, %v: want the one of %q", lines, err, name)
		}
		h := lines[0].Claims[0]
		if h.Kind != p.kind || !h.Held || !h.Foreign || !strings.Contains(h.Note, "2 holds") || !strings.Contains(h.Note, field[:8]) ||
			h.PublicID != driver.PublicID(field) || time.Until(h.Until) <= 0 {
			t.Errorf("%s is shown as %+v", p.theirs, h)
		}
		if err := look.Break(t.Context(), name, h.PublicID, 0, false); !errors.Is(err, driver.ErrOnlyNow) {
			t.Errorf("break %s: %v, want %v", p.theirs, err, driver.ErrOnlyNow)
		}
		waits := taking(t, client, p.ours, name)
		m.listened(t, name)
		if err := look.Break(t.Context(), name, h.PublicID, 0, true); err != nil {
			t.Errorf("break %s at once: %v", p.theirs, err)
		}
		got := within(t, "ours", waits)
		if got.err != nil {
			t.Fatal(got.err)
		}
		if err := theirs.Unlock(); err == nil {
			t.Errorf("%s was broken, and unlocks as if it still held", p.theirs)
		}
		if err := got.lease.Err(); err != nil {
			t.Errorf("after a broken %s unlocked: %v", p.theirs, err)
		}
		released(t, got.lease)
		if keys := m.do(t, name, "KEYS", "*rwlock_timeout*"); keys != "" {
			t.Errorf("broken, %s has left %q", p.theirs, keys)
		}
	}
	// Somebody's hash is shown for what it is, never listed as a lock, and never broken.
	m.do(t, "data", "HSET", "data", "colour", "red")
	l, err := look.Line(t.Context(), "data")
	if err != nil || len(l.Claims) != 1 || !strings.Contains(l.Claims[0].Note, "somebody's data") {
		t.Errorf("a hash that is no lock is shown as %+v, %v", l, err)
	}
	if lines, err := look.Lines(t.Context(), "data"); err != nil || len(lines) != 0 {
		t.Errorf("a hash that is no lock is listed: %+v, %v", lines, err)
	}
	if err := look.Break(t.Context(), "data", l.Claims[0].PublicID, 0, true); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("break of a hash that is no lock: %v, want %v", err, driver.ErrRefused)
	}
	if got := m.do(t, "data", "HGET", "data", "colour"); got != "red" {
		t.Errorf("the data are %q, want them untouched", got)
	}
}

// A Multi of ours and one of Redisson take their members one by one, as plain locks of the names.
func TestMembersAreLocksOfTheirNames(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	client := m.open(t, ages)
	theirs := m.theirs(t, foreigntest.RedissonMulti, "b,a", ages) // in the order that Java has named
	lease, err := client.Multi([]string{"a", "c"}).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs.MustNotLock(t, "ours")
	if n := m.do(t, "b", "EXISTS", "b"); n != "0" {
		t.Error("theirs keeps a member although it did not get all")
	}
	released(t, lease)
	theirs.MustLock(t, soon)
	for _, name := range []string{"a", "b"} {
		refusedOurs(t, client, mutexes, name)
	}
	released(t, taken(t, client, mutexes, "c"))
	theirs.MustUnlock(t)
}
