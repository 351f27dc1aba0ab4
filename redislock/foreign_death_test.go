//go:build linux || darwin

package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/foreigntest"
)

// early is how much sooner than by our clock a TTL may end by the server's, which counts whole
// milliseconds.
const early = 20 * time.Millisecond

// allTheirs starts a client of each library, with a lock of its own.
func allTheirs(t *testing.T, m meeting, ttl time.Duration) []*foreigntest.Client {
	t.Helper()
	var all []*foreigntest.Client
	for _, kind := range foreigntest.Kinds() {
		all = append(all, m.theirs(t, kind, "of "+string(kind), ttl))
	}
	return all
}

// A holder of another library is killed: ours get in when its TTL is over, not before.
func TestForeignHolderIsKilled(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	m := newMeeting(t)
	client := m.open(t, nil)
	type granted struct {
		after time.Duration
		lease *interlock.Lease
		err   error
	}
	all := allTheirs(t, m, ttl)
	results := make([]chan granted, len(all))
	for i, theirs := range all {
		start := time.Now()
		theirs.MustLock(t, 0)
		results[i] = make(chan granted, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), ttl+soon)
			defer cancel()
			lease, err := client.Mutex(theirs.Key()).Lock(ctx)
			results[i] <- granted{time.Since(start), lease, err}
		}()
		m.stand(t, theirs.Key(), 2)
		theirs.Kill()
	}
	for i, theirs := range all {
		g := <-results[i]
		if g.err != nil {
			t.Errorf("after %s was killed: %v", theirs.Kind(), g.err)
			continue
		}
		if g.after < ttl-early {
			t.Errorf("%s was killed with a lock for %v, and ours held it after %v", theirs.Kind(), ttl, g.after)
		}
		m.release(t, g.lease)
	}
}

// A holder of another library is stopped for longer than its TTL and releases what is ours by then:
// it changes nothing.
func TestForeignHolderReleasesLate(t *testing.T) {
	if testing.Short() {
		t.Skip("a lease that ends under a holder that stands still: make proof")
	}
	t.Parallel()
	m := newMeeting(t)
	client := m.open(t, nil)
	for _, shape := range shapes {
		all := allTheirs(t, m, time.Second)
		for _, theirs := range all {
			theirs.MustLock(t, soon)
			if err := theirs.Pause(); err != nil {
				t.Fatal(err)
			}
		}
		for _, theirs := range all {
			lease := m.hold(t, client, theirs.Key(), shape.take)
			if err := theirs.Resume(); err != nil {
				t.Fatal(err)
			}
			releasesLate(t, m, theirs, shape.name, lease)
		}
	}
}

// A holder of another library loses the name behind its back and releases what is ours by then: it
// changes nothing.
func TestForeignReleasesWhatItLost(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	client := m.open(t, &interlock.Options{TTL: ages})
	for i, theirs := range allTheirs(t, m, ages) {
		shape := shapes[i%len(shapes)]
		theirs.MustLock(t, 0)
		m.MustDo(t, "DEL", theirs.Key())
		lease := m.hold(t, client, theirs.Key(), shape.take)
		releasesLate(t, m, theirs, shape.name, lease)
	}
}

// releasesLate has another library release what it held once and our lease holds by now: it changes
// nothing.
func releasesLate(t *testing.T, m meeting, theirs *foreigntest.Client, ours string, lease *interlock.Lease) {
	t.Helper()
	// Most of them notice that they had lost it.
	if err := theirs.Unlock(); err != nil && !strings.Contains(err.Error(), string(theirs.Kind())+": unlock: ") {
		t.Error(err)
	}
	if stored := m.get(t, theirs.Key()); !strings.HasPrefix(stored, "il") {
		t.Errorf("%s releases late: the name has %q, want our %s's value", theirs.Kind(), stored, ours)
	}
	if err := lease.Err(); err != nil {
		t.Errorf("%s releases late: our %s: %v", theirs.Kind(), ours, err)
	}
	m.release(t, lease)
}

// Ours lose a name behind their backs, and another library takes it: our release says so and leaves
// its value alone.
func TestOursReleaseLate(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	client := m.open(t, &interlock.Options{TTL: ages})
	for i, theirs := range allTheirs(t, m, ages) {
		shape := shapes[i%len(shapes)]
		lease := m.hold(t, client, theirs.Key(), shape.take)
		m.MustDo(t, "DEL", theirs.Key())
		value := theirs.MustLock(t, 0)
		if err := lease.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("release of a %s that %s has now: %v, want %v", shape.name, theirs.Kind(), err, interlock.ErrLost)
		}
		if stored := m.get(t, theirs.Key()); stored != value {
			t.Errorf("after our release the name has %q, want %q, which %s wrote", stored, value, theirs.Kind())
		}
		theirs.MustUnlock(t)
	}
}

// A string without an end stands at the name: somebody's data, or a lock of redis-py in its
// default. Ours wait for it to go and never touch it; after a TTL the error says what it looks
// like.
func TestForeignValueWithoutEnd(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	const ttl = time.Second
	client := m.open(t, &interlock.Options{TTL: ttl})
	theirs := m.theirs(t, foreigntest.RedisPy, "precious", 0)
	value := theirs.MustLock(t, 0)
	for _, shape := range shapes {
		if testing.Short() && shape.name != shapes[0].name {
			break // each waits for two TTLs
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
		_, err := shape.take(ctx, client, "precious")
		cancel()
		if !errors.Is(err, interlock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "looks like somebody's data") {
			t.Errorf("%s, waiting for two TTLs: %v, want %v, and that it looks like somebody's data", shape.name, err, interlock.ErrHeld)
		}
		if stored := m.get(t, "precious"); stored != value {
			t.Errorf("the name has %q after our %s waited, want %q", stored, shape.name, value)
		}
		if ttl, err := m.Do("PTTL", "precious"); err != nil || ttl != "-1" {
			t.Errorf("PTTL is %s, %v, want -1: no end", ttl, err)
		}
	}
	theirs.MustUnlock(t)
	m.release(t, m.hold(t, client, "precious", shapes[0].take))
}
