//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/redissonlock"
)

// A lock of Redisson and one of ours with the same name are the same lock. In Redisson's place runs
// a program that writes and tells what it does: package foreigntest.

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

// pair is a lock of Redisson and one of ours that exclude each other.
type pair struct {
	theirs foreigntest.Kind
	ours   shape
}

var pairs = []pair{
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
	s := servertest.Redis(t, redistest.Durable...)
	return meeting{"redisson" + strings.TrimPrefix(s.URL(), "redis"), s, func(string) *servertest.Server { return s }}
}

func newClusterMeeting(t *testing.T) meeting {
	t.Helper()
	c := servertest.RedisCluster(t, 3, 0, redistest.Durable...)
	return meeting{
		"redisson" + strings.TrimPrefix(c.URL(), "redis"), c.Nodes[0],
		func(name string) *servertest.Server { return c.Owner(c.Slot(name)) },
	}
}

func (m meeting) open(t *testing.T, ttl time.Duration) *interlock.Client {
	t.Helper()
	return redistest.OpenClient(t, m.url, &interlock.Options{TTL: ttl})
}

func (m meeting) theirs(t *testing.T, kind foreigntest.Kind, name string, lease time.Duration) *foreigntest.Client {
	t.Helper()
	return foreigntest.Start(t, kind, []string{m.node.Addr()}, name, lease)
}

func (m meeting) do(t *testing.T, name string, args ...string) string {
	t.Helper()
	return m.at(name).MustDo(t, args...)
}

// listened waits until somebody listens for the end of the holds of a name.
func (m meeting) listened(t *testing.T, name string) {
	t.Helper()
	until(t, "nobody listens at "+name, func() bool { return m.subscribers(t, name) > 0 })
}

// until waits for a condition.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	redistest.Until(t, soon, what, met)
}

func released(t *testing.T, l *interlock.Lease) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Errorf("release: %v; want it held until now", err)
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

// within receives what must come soon, since the holder has released.
func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	return redistest.Receive(t, soon, "an answer for "+what, from)
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

// subscribers counts who listens at the name. Ours goes on listening for a second after it has got
// in.
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
