package redislock_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock"
)

// misplaced subscribes at the master of another key: it is as one that does not know yet that a
// slot has moved.
type misplaced struct {
	redisconn.Conn
	elsewhere string
}

func (m misplaced) Subscribe(ctx context.Context, key, channel string, heard func(string)) (*redisconn.Subscription, error) {
	s, err := m.Conn.Subscribe(ctx, m.elsewhere, channel, heard)
	if err == nil {
		s.Node = m.Node(key)
	}
	return s, err
}

// A Cluster carries messages to subscribers of all its nodes and counts those of one. A waiter that
// is passed over, because it does not count there, must not be told that it holds, or two do.
func TestClusterDoesNotTellWhomItPassesOver(t *testing.T) {
	c := servertest.RedisCluster(t, 2, 0)
	open := func(elsewhere string) driver.Session {
		u, err := url.Parse(c.URL())
		if err != nil {
			t.Fatal(err)
		}
		p := driver.NewParams(u)
		config, err := redisconn.ParseURL(u, p)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := redisconn.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		if elsewhere != "" {
			conn = misplaced{conn, elsewhere}
		}
		d, err := redislock.New(t.Context(), conn, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	name, elsewhere := "a", "b"
	for i := 0; c.Owner(c.Slot(elsewhere)) == c.Owner(c.Slot(name)); i++ {
		elsewhere += "b"
	}
	claim := func() driver.Claim {
		return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
	}
	first, deaf, last := open(""), open(elsewhere), open("")
	mine, passed, next := claim(), claim(), claim()
	for i, s := range []driver.Session{first, deaf, last} {
		g, err := s.Acquire(t.Context(), []driver.Claim{mine, passed, next}[i])
		if err != nil || g.Held != (i == 0) {
			t.Fatalf("claim %d: %+v, %v; want it held: %v", i, g, err, i == 0)
		}
	}
	if held, err := first.Release(t.Context(), mine); err != nil || !held {
		t.Fatalf("release: held %v, %v", held, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if g, err := last.Wait(ctx, next); err != nil || !g.Held {
		t.Fatalf("the last one waits: %+v, %v; want it held", g, err)
	}
	// What was published when the first left has arrived when a message sent later has.
	if held, err := last.Release(t.Context(), next); err != nil || !held {
		t.Fatalf("release: held %v, %v", held, err)
	}
	again := claim()
	if g, err := last.Acquire(t.Context(), again); err != nil || !g.Held {
		t.Fatalf("the name is free: %+v, %v", g, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if g, err := deaf.Wait(ctx, passed); err == nil && g.Held {
		t.Errorf("two hold the name: the one that was passed over was told that it does, token %d", g.Fence)
	}
}
