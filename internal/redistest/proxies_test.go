package redistest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// client is one that dials a server through proxies.
type client struct {
	redisconn.Conn
	t *testing.T
}

func dial(t *testing.T, b *redistest.Proxies, s *servertest.Server) client {
	t.Helper()
	return client{redistest.Connect(t, b, "redis://"+s.Addr()+"?timeout=200ms"), t}
}

// incr sends a request.
func (c client) incr() error {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := c.Do(ctx, redisconn.Command{Words: []string{"INCR", "n"}})
	return err
}

// What is done to proxies is done to those that there are, and to that of a server that is dialled
// later.
func TestProxiesAreStalledAndKilledTogether(t *testing.T) {
	b := redistest.NewProxies(t)
	early := dial(t, b, servertest.Redis(t))
	server := servertest.Redis(t)
	heal, healReplies := b.Stall(wire.Requests), b.Stall(wire.Replies)
	if err := early.incr(); err == nil {
		t.Error("a request passes proxies that are stalled")
	}
	late := b.To(server.Addr())
	ask := func() error {
		conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{late.Addr()}, Timeout: 200 * time.Millisecond})
		if err == nil {
			conn.Close()
		}
		return err
	}
	heal()
	heal() // again: nothing
	if err := ask(); err == nil {
		t.Error("a wire that was laid later answers while replies are held")
	}
	healReplies()
	if err := ask(); err != nil {
		t.Errorf("after the stall: %v", err)
	}
	b.Kill()
	if err := early.incr(); err == nil {
		t.Error("a request passes proxies that were killed")
	}
	if _, err := b.Dial(t.Context(), "tcp", servertest.Redis(t).Addr()); err == nil {
		t.Error("a server is dialled through proxies that were killed")
	}
}

func TestProxiesCountWhatIsNotTheClientsOwn(t *testing.T) {
	b := redistest.NewProxies(t)
	servers := []*servertest.Server{servertest.Redis(t), servertest.Redis(t), servertest.Redis(t)}
	b.Idle, b.Own = []string{servers[1].Addr()}, []string{"ECHO"}
	for i, s := range servers {
		c := dial(t, b, s)
		before := b.Calls()[i]
		for _, words := range [][]string{{"PING"}, {"ECHO", "x"}, {"INCR", "n"}, {"INCR", "n"}} {
			if _, err := c.Do(t.Context(), redisconn.Command{Words: words}); err != nil {
				t.Fatal(err)
			}
		}
		want := []int{2, 0, 2}[i]
		if n := b.Calls()[i] - before; n != want {
			t.Errorf("server %d: %d calls, want %d", i, n, want)
		}
	}
	if calls := b.Calls(); len(calls) != len(servers) || !slices.Contains(calls, 0) {
		t.Errorf("calls by server: %v, want none at the idle one", calls)
	}
}

func TestDeafenLosesMessages(t *testing.T) {
	b := redistest.NewProxies(t)
	s := servertest.Redis(t)
	c := dial(t, b, s)
	heard := make(chan string, 10)
	sub, err := c.Subscribe(t.Context(), "n", "news", func(text string) { heard <- text })
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	publish := func(text string) {
		t.Helper()
		if n, err := s.Do("PUBLISH", "news", text); n != "1" || err != nil {
			t.Fatalf("PUBLISH: %q, %v", n, err)
		}
	}
	heal := b.Deafen()
	publish("lost")
	until := time.Now().Add(10 * time.Second)
	for b.To(s.Addr()).Count().Replies.Dropped == 0 {
		if time.Now().After(until) {
			t.Fatal("nothing is dropped")
		}
		if err := c.incr(); err != nil {
			t.Fatalf("a deaf driver's request: %v", err)
		}
	}
	heal()
	publish("heard")
	if text := <-heard; text != "heard" {
		t.Errorf("heard %q first, want what was published after the healing", text)
	}
}
