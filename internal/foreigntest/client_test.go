//go:build unix

package foreigntest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

const (
	long  = time.Minute      // a TTL that no test waits for
	short = 3 * time.Second  // one that a test waits for
	in    = 10 * time.Second // for what has no reason to wait, or waits for a short TTL
)

// Each client by itself: what it writes and where, how it waits, extends and lets go.
func TestClients(t *testing.T) {
	server := servertest.Redis(t)
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			name := "a lock of " + string(kind)
			one := Start(t, kind, []string{server.Addr()}, name, long)
			two := Start(t, kind, []string{server.Addr()}, name, long)
			if want := kind.Key(name); one.Key() != want || one.Kind() != kind {
				t.Errorf("client %s with key %q, want %s with %q", one.Kind(), one.Key(), kind, want)
			}

			value := one.MustLock(t, 0)
			if got := server.MustDo(t, "GET", one.Key()); got != value || value == "" {
				t.Errorf("the key has %q, the client says that it wrote %q", got, value)
			}
			if left := ttl(t, server, one.Key()); left <= 0 || left > long {
				t.Errorf("the lock ends in %v, want %v at most", left, long)
			}
			two.MustNotLock(t, "another one")

			if err := one.Extend(2 * long); err != nil {
				t.Error(err)
			}
			if left := ttl(t, server, one.Key()); left <= long {
				t.Errorf("the lock ends in %v after it was extended to %v", left, 2*long)
			}
			if got := server.MustDo(t, "GET", one.Key()); got != value {
				t.Errorf("the key has %q after it was extended, want %q", got, value)
			}

			taken := lockSoon(two)
			one.MustUnlock(t)
			if err := <-taken; err != nil {
				t.Errorf("the one that waited: %v", err)
			}
			one.MustNotLock(t, "another one")
			two.MustUnlock(t)
			if n := server.MustDo(t, "EXISTS", one.Key()); n != "0" {
				t.Error("the key is there when nobody holds the lock")
			}
		})
	}
}

// Every client keeps every other one out and hands over to the next, whatever language it is written in.
func TestClientsExcludeEachOther(t *testing.T) {
	server := servertest.Redis(t)
	const key = "mutex:everybody's" // which the clients without a prefix take as a name
	var clients []*Client
	for _, kind := range Kinds() {
		clients = append(clients, Start(t, kind, []string{server.Addr()}, strings.TrimPrefix(key, kind.Key("")), long))
	}
	clients[0].MustLock(t, 0)
	for i, holder := range clients {
		for _, other := range clients {
			if other == holder {
				continue
			}
			if _, err := other.Lock(0); !errors.Is(err, ErrTimeout) {
				t.Errorf("%s, while %s holds: %v, want %v", other.Kind(), holder.Kind(), err, ErrTimeout)
			}
		}
		next := clients[(i+1)%len(clients)]
		taken := lockSoon(next)
		holder.MustUnlock(t)
		if err := <-taken; err != nil {
			t.Fatalf("%s waited for %s: %v", next.Kind(), holder.Kind(), err)
		}
	}
}

// A client that was killed holds on for the rest of its TTL and no longer, even one that renews by itself.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	killed, waiting := startAll(t, server, short), startAll(t, server, long)
	for i, c := range killed {
		c.MustLock(t, 0)
		c.Kill()
		if _, err := waiting[i].Lock(0); !errors.Is(err, ErrTimeout) {
			t.Errorf("%s, as soon as the holder was killed: %v, want %v", c.Kind(), err, ErrTimeout)
		}
	}
	for i, c := range killed {
		waiting[i].MustLock(t, in)
		if _, err := c.Lock(0); err == nil || !strings.Contains(err.Error(), "has ended (signal: killed)") {
			t.Errorf("%s was killed and answers %v", c.Kind(), err)
		}
	}
}

// A client that renews holds on beyond its TTL; others do not.
func TestRenews(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	holding, asking := startAll(t, server, short), startAll(t, server, long)
	for _, c := range holding {
		c.MustLock(t, 0)
	}
	for _, c := range asking {
		if !c.Kind().Renews() {
			c.MustLock(t, in)
		}
	}
	for _, c := range asking {
		if c.Kind().Renews() {
			if _, err := c.Lock(short); !errors.Is(err, ErrTimeout) {
				t.Errorf("%s held by one that renews: %v, want %v", c.Kind(), err, ErrTimeout)
			}
		}
	}
}

// A client that was stopped for longer than its TTL must not release what is another one's by then.
func TestLateUnlock(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	stopped, next := startAll(t, server, short), startAll(t, server, long)
	for _, c := range stopped {
		c.MustLock(t, 0)
		if err := c.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range stopped {
		value := next[i].MustLock(t, in)
		if err := c.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := c.Unlock(); err == nil && !c.Kind().Renews() {
			t.Errorf("%s releases a lock that it had lost as if nothing had been", c.Kind())
		}
		if got := server.MustDo(t, "GET", c.Key()); got != value {
			t.Errorf("the key has %q after a late unlock of %s, want %q", got, c.Kind(), value)
		}
	}
}

// Those that can take a majority of several servers write the same value to each, and are kept out by a majority.
func TestSeveralServers(t *testing.T) {
	servers := []*servertest.Server{servertest.Redis(t), servertest.Redis(t), servertest.Redis(t)}
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	for _, kind := range Kinds() {
		if !kind.Many() {
			continue
		}
		c := Start(t, kind, addrs, "one of "+string(kind), long)
		value := c.MustLock(t, 0)
		for _, s := range servers { // some clients return when a majority has answered
			got := s.MustDo(t, "GET", c.Key())
			for end := time.Now().Add(10 * time.Second); got != value && time.Now().Before(end); got = s.MustDo(t, "GET", c.Key()) {
				time.Sleep(time.Millisecond)
			}
			if got != value {
				t.Errorf("%s: one of the servers has %q, want %q", kind, got, value)
			}
		}
		c.MustUnlock(t)
		for _, s := range servers[1:] {
			s.MustDo(t, "SET", c.Key(), "somebody's")
		}
		if _, err := c.Lock(0); !errors.Is(err, ErrTimeout) {
			t.Errorf("%s, while somebody holds two of three servers: %v, want %v", kind, err, ErrTimeout)
		}
	}
}

// redis-py can hold for ever.
func TestWithoutTTL(t *testing.T) {
	server := servertest.Redis(t)
	c := Start(t, RedisPy, []string{server.Addr()}, "x", 0)
	c.MustLock(t, 0)
	if left := server.MustDo(t, "PTTL", "x"); left != "-1" {
		t.Errorf("PTTL is %s, want -1: none", left)
	}
	c.MustUnlock(t)
}

// What is asked of a client that does not answer ends, and the client with it.
func TestSilence(t *testing.T) {
	server := servertest.Redis(t)
	c := Start(t, Redsync, []string{server.Addr()}, "x", long)
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask("lock 0", 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not answer for 10ms") {
		t.Errorf("asked a client that is stopped: %v", err)
	}
	if err := c.Unlock(); err == nil {
		t.Error("a client that missed its time still answers, perhaps to what was asked before")
	}
}

// startAll starts a client of each kind, with a lock of its own.
func startAll(t *testing.T, server *servertest.Server, ttl time.Duration) []*Client {
	t.Helper()
	var clients []*Client
	for _, kind := range Kinds() {
		clients = append(clients, Start(t, kind, []string{server.Addr()}, "one of "+string(kind), ttl))
	}
	return clients
}

// lockSoon asks for the lock in the background.
func lockSoon(c *Client) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Lock(in)
		done <- err
	}()
	return done
}

func ttl(t *testing.T, server *servertest.Server, key string) time.Duration {
	t.Helper()
	ms, err := strconv.Atoi(server.MustDo(t, "PTTL", key))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}
