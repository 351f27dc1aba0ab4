//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/foreigntest"
)

// bothWays has ours wait for Redisson's hold and Redisson for ours. Every lease is long, and so is
// the time between our renewals: who gets in soon was told.
func (m meeting) bothWays(t *testing.T, kind foreigntest.Kind, ours shape, name string) {
	t.Helper()
	client := m.open(t, ages)
	theirs := m.theirs(t, kind, theirName(kind, name), ages)
	l := taken(t, client, ours, name)
	theirs.MustNotLock(t, "ours")
	theyWait := locking(theirs)
	m.listened(t, name)
	released(t, l)
	if err := within(t, string(kind)+", which waits for ours", theyWait); err != nil {
		t.Fatal(err)
	}
	refusedOurs(t, client, ours, name)
	until(t, "theirs goes on listening", func() bool { return m.subscribers(t, name) == 0 })
	weWait := taking(t, client, ours, name)
	m.listened(t, name)
	theirs.MustUnlock(t)
	got := within(t, "our "+ours.name+", which waits for theirs", weWait)
	if got.err != nil {
		t.Fatal(got.err)
	}
	released(t, got.lease)
	if n := m.do(t, name, "EXISTS", name); n != "0" {
		t.Errorf("the key is there when nobody holds the lock: %s", m.do(t, name, "HGETALL", name))
	}
}

func TestRedissonAndOursExcludeAndWakeEachOther(t *testing.T) {
	t.Parallel()
	newMeeting(t).meet(t, pairs)
}

// On a Cluster of Redis 7 Redisson tells by messages of the shard, and hears no others.
func TestRedissonAndOursOnACluster(t *testing.T) {
	t.Parallel()
	newClusterMeeting(t).meet(t, append(pairs[:2:2], pairs[3])) // without Multi, which is as Lock
}

func (m meeting) meet(t *testing.T, pairs []pair) {
	t.Helper()
	for _, p := range pairs {
		t.Run(string(p.theirs)+" "+p.ours.name, func(t *testing.T) {
			t.Parallel()
			m.bothWays(t, p.theirs, p.ours, fmt.Sprintf("%s and our %s", p.theirs, p.ours.name))
		})
	}
}

// Braces in a name move Redisson's own.
func TestRedissonNamesWithBraces(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	for _, name := range []string{"{tag}of", "a{b", "a}b", "{}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.bothWays(t, foreigntest.RedissonLock, mutexes, name)
		})
	}
	t.Run("reader {tag}rw", func(t *testing.T) {
		t.Parallel()
		m.bothWays(t, foreigntest.RedissonRead, writers, "{tag}rw")
	})
}

// Redisson's FencedLock and ours draw from one counter, in the order of their holds.
func TestRedissonTokens(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	const name = "fenced"
	client := m.open(t, ages)
	theirs := m.theirs(t, foreigntest.RedissonFenced, name, ages)
	token := func() uint64 {
		value := strings.Fields(theirs.MustLock(t, soon))
		n, err := strconv.ParseUint(value[len(value)-1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		theirs.MustUnlock(t)
		return n
	}
	if first := token(); first != 1 {
		t.Errorf("their first token is %d, want 1", first)
	}
	last := uint64(1)
	for range 3 {
		l := taken(t, client, mutexes, name)
		if l.Fence() != last+1 {
			t.Errorf("our token is %d after %d of theirs, want the next one", l.Fence(), last)
		}
		last = l.Fence() + driver.Stride - 1
		released(t, l)
		if n := token(); n != last+1 {
			t.Errorf("their token is %d after ours up to %d, want the next one", n, last)
		}
		last++
	}
}

// A watchdog, theirs or the core's, holds beyond the lease.
func TestRedissonWatchdogs(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	const ttl = time.Second
	for _, p := range []struct {
		kind, other foreigntest.Kind
		ours        shape
	}{
		{foreigntest.RedissonLock, foreigntest.RedissonLock, mutexes},
		{foreigntest.RedissonRead, foreigntest.RedissonWrite, readers},
		{foreigntest.RedissonWrite, foreigntest.RedissonRead, writers},
	} {
		t.Run(p.ours.name, func(t *testing.T) {
			t.Parallel()
			name := "watched " + p.ours.name
			client := m.open(t, ttl)
			l := taken(t, client, p.ours, name)
			if _, err := m.theirs(t, p.other, name, ages).Lock(2 * ttl); !errors.Is(err, foreigntest.ErrTimeout) {
				t.Errorf("while ours holds for two leases: %v, want %v", err, foreigntest.ErrTimeout)
			}
			if err := l.Err(); err != nil {
				t.Errorf("our lease: %v", err)
			}
			released(t, l)

			theirs := m.theirs(t, p.kind, name, -ttl)
			theirs.MustLock(t, soon)
			excluded := mutexes
			if p.kind != foreigntest.RedissonLock {
				excluded = writers
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
			defer cancel()
			if _, err := excluded.take(ctx, client, name); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("while theirs holds for two leases: %v, want %v", err, interlock.ErrHeld)
			}
			theirs.MustUnlock(t)
		})
	}
}

// The one who waits for a dead holder gets in when the lease is over, and not before.
func TestRedissonDeadHolder(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	const ttl = time.Second
	for _, i := range []int{0, 4, 5} {
		p := pairs[i]
		t.Run(string(p.theirs)+" "+p.ours.name, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("dead %s, our %s", p.theirs, p.ours.name)
			theirs, next := m.theirs(t, p.theirs, name, ttl), m.theirs(t, p.theirs, name, ages)
			began := time.Now()
			theirs.MustLock(t, 0)
			theirs.Kill()
			l := taken(t, m.open(t, ages), p.ours, name)
			if early := ttl - time.Since(began); early > 0 {
				t.Errorf("ours got in %v before the dead holder's lease was over", early)
			}
			released(t, l)

			d, err := driver.OpenURL(t.Context(), m.url) // a session that nobody renews
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close(t.Context()) }()
			s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			kind := map[string]driver.Kind{"mutex": driver.Mutex, "writer": driver.Write, "reader": driver.Read}[p.ours.name]
			weight := driver.All
			if kind == driver.Read {
				weight = 1
			}
			began = time.Now()
			if g, err := s.Acquire(t.Context(), driver.Claim{Name: name, ID: driver.NewID(), Kind: kind, Weight: weight, Limit: driver.All}); err != nil || !g.Held {
				t.Fatalf("Acquire: %+v, %v", g, err)
			}
			next.MustLock(t, soon)
			if early := ttl - time.Since(began); early > 0 {
				t.Errorf("theirs got in %v before our lease was over", early)
			}
			next.MustUnlock(t)
		})
	}
}

// Readers of both hold together. One that leaves, theirs or ours, does not take the lock away under
// the other.
func TestRedissonReadersTogether(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	const name = "readers"
	client := m.open(t, ages)
	theirs, writer := m.theirs(t, foreigntest.RedissonRead, name, ages), m.theirs(t, foreigntest.RedissonWrite, name, ages)
	for _, first := range []string{"ours", "theirs"} {
		theirs.MustLock(t, soon)
		l := taken(t, client, readers, name)
		writer.MustNotLock(t, "ours")
		waits := locking(writer)
		m.listened(t, name)
		if first == "ours" {
			released(t, l)
		} else {
			theirs.MustUnlock(t)
		}
		if mode := m.do(t, name, "HGET", name, "mode"); mode != "read" {
			t.Fatalf("%s left, and the mode of the other reader's lock is %q, want read", first, mode)
		}
		if l, err := writers.try(t.Context(), client, name); !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("our writer, while one reader is left: %v, %v; want %v", l, err, interlock.ErrHeld)
		}
		if len(waits) > 0 {
			t.Fatalf("%s left, and a writer got in beside the other reader: %v", first, <-waits)
		}
		if first == "ours" {
			theirs.MustUnlock(t)
		} else {
			if err := l.Err(); err != nil {
				t.Errorf("our lease after their reader left: %v", err)
			}
			released(t, l)
		}
		if err := within(t, "their writer", waits); err != nil {
			t.Fatal(err)
		}
		writer.MustUnlock(t)
	}
}
