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
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/redissonlock"
)

// A lock of Redisson and one of ours with the same name are the same lock. In Redisson's place runs a program that writes and
// tells what it does: package foreigntest.

const (
	ages = time.Minute      // a TTL that no test waits for, nor a third of it
	soon = 10 * time.Second // for what has to wait for no TTL and no renewal, on a machine that has other things to do
)

// shape is a way in which ours take a name.
type shape struct {
	name      string
	take, try func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error)
}

var (
	mutexes = shape{
		"mutex",
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.Mutex(name).Lock(ctx)
		},
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.Mutex(name).TryLock(ctx)
		},
	}
	writers = shape{
		"writer",
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.RWMutex(name).Lock(ctx)
		},
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.RWMutex(name).TryLock(ctx)
		},
	}
	readers = shape{
		"reader",
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.RWMutex(name).RLock(ctx)
		},
		func(ctx context.Context, c *interlock.Client, name string) (*interlock.Lease, error) {
			return c.RWMutex(name).TryRLock(ctx)
		},
	}
)

// pairs exclude each other.
var pairs = []struct {
	theirs foreigntest.Kind
	ours   shape
}{
	{foreigntest.RedissonLock, mutexes},
	{foreigntest.RedissonFenced, mutexes},
	{foreigntest.RedissonMulti, mutexes},
	{foreigntest.RedissonWrite, writers},
	{foreigntest.RedissonWrite, readers},
	{foreigntest.RedissonRead, writers},
}

// meeting is a server, or a Cluster, where our locks and those of Redisson meet.
type meeting struct {
	url  string
	node *servertest.Server
	at   func(name string) *servertest.Server // that has the name
}

func newMeeting(t *testing.T) meeting {
	t.Helper()
	s := servertest.Redis(t, durable...)
	return meeting{"redisson" + strings.TrimPrefix(s.URL(), "redis"), s, func(string) *servertest.Server { return s }}
}

func newClusterMeeting(t *testing.T) meeting {
	t.Helper()
	c := servertest.RedisCluster(t, 3, 0, durable...)
	return meeting{
		"redisson" + strings.TrimPrefix(c.URL(), "redis"), c.Nodes[0],
		func(name string) *servertest.Server { return c.Owner(c.Slot(name)) },
	}
}

func (m meeting) open(t *testing.T, ttl time.Duration) *interlock.Client {
	t.Helper()
	client, err := interlock.Open(t.Context(), m.url, &interlock.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func (m meeting) theirs(t *testing.T, kind foreigntest.Kind, name string, lease time.Duration) *foreigntest.Client {
	t.Helper()
	return foreigntest.Start(t, kind, []string{m.node.Addr()}, name, lease)
}

func (m meeting) do(t *testing.T, name string, args ...string) string {
	t.Helper()
	reply, err := m.at(name).Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// line returns who stands at the name.
func (m meeting) line(t *testing.T, name string) []driver.Holder {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), m.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	l, err := d.(driver.Inspector).Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Claims
}

// listened waits until somebody listens for the end of the holds of a name.
func (m meeting) listened(t *testing.T, name string) {
	t.Helper()
	until(t, "nobody listens at "+name, func() bool { return m.subscribers(t, name) > 0 })
}

// until waits for a condition.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(soon); !met(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("after %v: %s", soon, what)
		}
	}
}

func locked(t *testing.T, c *foreigntest.Client, wait time.Duration) (value string) {
	t.Helper()
	value, err := c.Lock(wait)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func unlocked(t *testing.T, c *foreigntest.Client) {
	t.Helper()
	if err := c.Unlock(); err != nil {
		t.Error(err)
	}
}

func released(t *testing.T, l *interlock.Lease) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// taken takes a name that is free, or becomes free without anybody's TTL.
func taken(t *testing.T, c *interlock.Client, s shape, name string) *interlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	l, err := s.take(ctx, c, name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// started is what goes on in the background.
type started struct {
	lease *interlock.Lease
	err   error
}

func taking(t *testing.T, c *interlock.Client, s shape, name string) <-chan started {
	t.Helper()
	done := make(chan started, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), ages)
		defer cancel()
		l, err := s.take(ctx, c, name)
		done <- started{l, err}
	}()
	return done
}

func locking(c *foreigntest.Client) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Lock(ages)
		done <- err
	}()
	return done
}

// within receives what must come soon.
func within[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(soon)
	defer timer.Stop()
	select {
	case v = <-from:
	case <-timer.C:
		t.Fatalf("%s: not in %v, although the holder has released: nobody told", what, soon)
	}
	return v
}

// refusedTheirs sees that Redisson is kept out, whether it tries or waits.
func refusedTheirs(t *testing.T, c *foreigntest.Client) {
	t.Helper()
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		if _, err := c.Lock(wait); !errors.Is(err, foreigntest.ErrTimeout) {
			t.Errorf("%s, waiting %v while ours holds: %v, want %v", c.Kind(), wait, err, foreigntest.ErrTimeout)
		}
	}
}

// refusedOurs sees that ours is kept out by a foreign holder.
func refusedOurs(t *testing.T, c *interlock.Client, s shape, name string) {
	t.Helper()
	_, err := s.try(t.Context(), c, name)
	var held *interlock.HeldError
	if !errors.Is(err, interlock.ErrHeld) || !errors.As(err, &held) || held.Holder == nil || !held.Holder.Foreign {
		t.Errorf("a %s tries while another program holds: %v, want %v by another program", s.name, err, interlock.ErrHeld)
	}
}

// theirName is one name, or several for those who take several.
func theirName(kind foreigntest.Kind, name string) string {
	if kind == foreigntest.RedissonMulti {
		return "first of " + name + "," + name
	}
	return name
}

// bothWays has ours wait for Redisson's hold and Redisson for ours. Every lease is long, and so is the time between our
// renewals: who gets in soon was told.
func (m meeting) bothWays(t *testing.T, kind foreigntest.Kind, ours shape, name string) {
	t.Helper()
	client := m.open(t, ages)
	theirs := m.theirs(t, kind, theirName(kind, name), ages)
	l := taken(t, client, ours, name)
	refusedTheirs(t, theirs)
	theyWait := locking(theirs)
	m.listened(t, name)
	released(t, l)
	if err := within(t, string(kind), theyWait); err != nil {
		t.Fatal(err)
	}
	refusedOurs(t, client, ours, name)
	until(t, "theirs goes on listening", func() bool { return m.subscribers(t, name) == 0 })
	weWait := taking(t, client, ours, name)
	m.listened(t, name)
	unlocked(t, theirs)
	got := within(t, "our "+ours.name, weWait)
	if got.err != nil {
		t.Fatal(got.err)
	}
	released(t, got.lease)
	if n := m.do(t, name, "EXISTS", name); n != "0" {
		t.Errorf("the key is there when nobody holds the lock: %s", m.do(t, name, "HGETALL", name))
	}
}

// subscribers counts who listens at the name. Ours goes on listening for a second after it has got in.
func (m meeting) subscribers(t *testing.T, name string) (n int) {
	t.Helper()
	braced := name
	if !strings.Contains(name, "{") {
		braced = "{" + name + "}"
	}
	for _, count := range []string{"NUMSUB", "SHARDNUMSUB"} {
		for _, channel := range []string{"redisson_lock__channel:", "redisson_rwlock:"} {
			fields := strings.Fields(m.do(t, name, "PUBSUB", count, channel+braced))
			some, _ := strconv.Atoi(fields[len(fields)-1])
			n += some
		}
	}
	return n
}

func TestRedissonAndOursExcludeAndWakeEachOther(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	for _, p := range pairs {
		t.Run(string(p.theirs)+" "+p.ours.name, func(t *testing.T) {
			t.Parallel()
			m.bothWays(t, p.theirs, p.ours, fmt.Sprintf("%s and our %s", p.theirs, p.ours.name))
		})
	}
}

// On a Cluster of Redis 7 Redisson tells by messages of the shard, and hears no others.
func TestRedissonAndOursOnACluster(t *testing.T) {
	t.Parallel()
	m := newClusterMeeting(t)
	for _, p := range pairs[:4] {
		if p.theirs == foreigntest.RedissonMulti {
			continue // as Lock
		}
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
		value := strings.Fields(locked(t, theirs, soon))
		n, err := strconv.ParseUint(value[len(value)-1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		unlocked(t, theirs)
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
			locked(t, theirs, soon)
			excluded := mutexes
			if p.kind != foreigntest.RedissonLock {
				excluded = writers
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
			defer cancel()
			if _, err := excluded.take(ctx, client, name); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("while theirs holds for two leases: %v, want %v", err, interlock.ErrHeld)
			}
			unlocked(t, theirs)
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
			locked(t, theirs, 0)
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
			locked(t, next, soon)
			if early := ttl - time.Since(began); early > 0 {
				t.Errorf("theirs got in %v before our lease was over", early)
			}
			unlocked(t, next)
		})
	}
}

// Readers of both hold together. One that leaves, theirs or ours, does not take the lock away under the other.
func TestRedissonReadersTogether(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	const name = "readers"
	client := m.open(t, ages)
	theirs, writer := m.theirs(t, foreigntest.RedissonRead, name, ages), m.theirs(t, foreigntest.RedissonWrite, name, ages)
	for _, first := range []string{"ours", "theirs"} {
		locked(t, theirs, soon)
		l := taken(t, client, readers, name)
		refusedTheirs(t, writer)
		waits := locking(writer)
		m.listened(t, name)
		if first == "ours" {
			released(t, l)
		} else {
			unlocked(t, theirs)
		}
		if l, err := writers.try(t.Context(), client, name); !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("our writer, while one reader is left: %v, %v", l, err)
		}
		if len(waits) > 0 {
			t.Fatalf("%s left, and a writer got in beside the other reader: %v", first, <-waits)
		}
		if first == "ours" {
			unlocked(t, theirs)
		} else {
			if err := l.Err(); err != nil {
				t.Errorf("our lease after their reader left: %v", err)
			}
			released(t, l)
		}
		if err := within(t, "their writer", waits); err != nil {
			t.Fatal(err)
		}
		unlocked(t, writer)
	}
}
