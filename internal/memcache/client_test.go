package memcache_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/servertest"
)

const patience = 30 * time.Second

func client(t *testing.T, addr string) *memcache.Client {
	t.Helper()
	return clientOf(t, memcache.Server{Addr: addr, Timeout: patience})
}

func clientOf(t *testing.T, s memcache.Server) *memcache.Client {
	t.Helper()
	c := memcache.New(s)
	t.Cleanup(c.Close)
	return c
}

// ask makes a request in time.
func ask(t *testing.T, c *memcache.Client, request *memcache.Request) (memcache.Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Do(ctx, request)
}

// says insists on the answers.
func says(t *testing.T, c *memcache.Client, requests []*memcache.Request, want ...memcache.Status) []memcache.Reply {
	t.Helper()
	var replies []memcache.Reply
	var got []memcache.Status
	for _, one := range requests {
		r, err := ask(t, c, one)
		if err != nil {
			t.Fatal(err)
		}
		replies, got = append(replies, r), append(got, r.Status)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("answered %q, want %q", got, want)
	}
	return replies
}

func requests(r ...*memcache.Request) []*memcache.Request { return r }

// Every step names the version of the item, and only where that still stands anything happens.
func TestItemsChangeByTheirVersions(t *testing.T) {
	t.Parallel()
	c := client(t, servertest.Memcached(t).Addr())
	r := says(t, c, requests(memcache.Nothing(), memcache.Get("k"), memcache.Add("k", []byte("a\r\n"), 60), memcache.Add("k", []byte("b"), 60), memcache.Get("k")),
		memcache.Alive, memcache.None, memcache.Done, memcache.NotStored, memcache.Value)
	first := r[2].Version
	other := memcache.Version{CAS: first.CAS + 100, Start: first.Start}
	if got := r[4]; first.CAS == 0 || got.Version != first || string(got.Value) != "a\r\n" || got.Left < 1 || got.Left > 60 || got.Start == 0 {
		t.Errorf("stored with version %v, there is %+v", first, got)
	}
	r = says(t, c, requests(memcache.Swap("k", []byte("c"), 60, other), memcache.Swap("k", []byte("c"), 60, first), memcache.Swap("k", []byte("d"), 60, first), memcache.Delete("k", first)),
		memcache.Changed, memcache.Done, memcache.Changed, memcache.Changed)
	if r[1].CAS <= first.CAS {
		t.Errorf("version %d after %d", r[1].CAS, first.CAS)
	}
	says(t, c, requests(memcache.Delete("k", r[1].Version), memcache.Delete("k", r[1].Version), memcache.Swap("k", nil, 60, r[1].Version)),
		memcache.Done, memcache.NotFound, memcache.NotFound)
	if _, err := ask(t, c, memcache.Add("long", make([]byte, 2<<20), 60)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("an item that is too long: %v", err)
	}
	says(t, c, requests(memcache.Get("k")), memcache.None)
}

// A request whose caller has gone keeps its place: what is sent after it comes after it.
func TestWhatWasGivenUpComesFirst(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	w := wire.New(t, s.Addr())
	c := client(t, w.Addr())
	says(t, c, requests(memcache.Nothing()), memcache.Alive)
	heal := w.Stall(wire.Both)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Do(ctx, memcache.Add("k", nil, 60)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrNotSent) {
		t.Fatalf("over a wire that stands still: %v", err)
	}
	heal()
	says(t, c, requests(memcache.Get("k")), memcache.Value)
}

// A server that owes an answer and says nothing is asked over another connection after a while; one
// that owes nothing may say nothing.
func TestSilenceEndsAConnection(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	w := wire.New(t, s.Addr())
	c := clientOf(t, memcache.Server{Addr: w.Addr(), Timeout: 300 * time.Millisecond})
	says(t, c, requests(memcache.Nothing()), memcache.Alive)
	idle := time.NewTimer(700 * time.Millisecond)
	<-idle.C
	says(t, c, requests(memcache.Nothing()), memcache.Alive)
	if n := w.Count().Connections; n != 1 {
		t.Errorf("%d connections, want 1: nothing was owed", n)
	}
	heal := w.Stall(wire.Replies)
	if _, err := ask(t, c, memcache.Nothing()); err == nil || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a server that says nothing: %v", err)
	}
	heal()
	says(t, c, requests(memcache.Nothing()), memcache.Alive)
	if n := w.Count().Connections; n < 2 {
		t.Errorf("%d connections, want another one after silence", n)
	}
}

// What was under way when a connection broke is of unknown outcome; the next request has a
// connection of its own.
func TestAConnectionThatBreaks(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	w := wire.New(t, s.Addr())
	c := client(t, w.Addr())
	says(t, c, requests(memcache.Nothing()), memcache.Alive)
	w.Stall(wire.Replies)
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(context.Background(), memcache.Add("k", nil, 60))
		done <- err
	}()
	for end := time.Now().Add(patience); !strings.Contains(has(t, s, "k"), "VA"); {
		if time.Now().After(end) {
			t.Fatal("the request does not arrive")
		}
	}
	w.Refuse()
	w.Cut()
	if err := <-done; err == nil || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("what had no answer: %v", err)
	}
	if _, err := ask(t, c, memcache.Nothing()); !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("where nobody listens: %v, want that nothing was sent", err)
	}
}

// has asks a server over another connection.
func has(t *testing.T, s *servertest.Server, key string) string {
	t.Helper()
	r, err := ask(t, client(t, s.Addr()), memcache.Get(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Status)
}

// An error of the protocol ends the connection: answers could be those to other requests.
func TestBadRequestsEndTheConnection(t *testing.T) {
	t.Parallel()
	c := client(t, servertest.Memcached(t).Addr())
	for _, key := range []string{"a b", strings.Repeat("x", 251)} {
		if _, err := ask(t, c, memcache.Add(key, []byte("mn"), 60)); err == nil {
			t.Errorf("key %.10q is taken", key)
		}
		for range 3 {
			says(t, c, requests(memcache.Nothing(), memcache.Get("none")), memcache.Alive, memcache.None)
		}
	}
}

func TestUserAndPassword(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "memcache-") // which the server can read, whoever it runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "users")
	if err := os.WriteFile(file, []byte("app:secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := servertest.Memcached(t, "-Y", file)
	says(t, clientOf(t, memcache.Server{Addr: s.Addr(), User: "app", Password: "secret", Timeout: patience}), requests(memcache.Nothing()), memcache.Alive)
	for _, server := range []memcache.Server{{}, {User: "app", Password: "hunter2"}} {
		server.Addr, server.Timeout = s.Addr(), patience
		_, err := ask(t, clientOf(t, server), memcache.Nothing())
		if !errors.Is(err, driver.ErrRefused) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("user %q: %v, want a refusal without the password", server.User, err)
		}
	}
	open := servertest.Memcached(t)
	says(t, clientOf(t, memcache.Server{Addr: open.Addr(), User: "app", Password: "secret", Timeout: patience}), requests(memcache.Nothing()), memcache.Alive)
	if has(t, open, "auth") != string(memcache.None) {
		t.Error("a server that asks for no password keeps it as an item")
	}
}

// What is no memcached, or one without versions, says so and gets nothing else.
func TestStrangeServers(t *testing.T) {
	t.Parallel()
	if _, err := ask(t, client(t, servertest.Memcached(t, "-C").Addr()), memcache.Nothing()); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "-C") {
		t.Errorf("a server without versions: %v", err)
	}
	full := servertest.Memcached(t, "-c", "32", "-t", "1")
	for {
		c, err := net.Dial("tcp", full.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, _ := c.Read(make([]byte, 1)); n > 0 { // one too many, which it says at once
			break
		}
	}
	if _, err := ask(t, client(t, full.Addr()), memcache.Nothing()); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "-c") {
		t.Errorf("a server with too many connections: %v", err)
	}
	if _, err := ask(t, client(t, servertest.Redis(t).Addr()), memcache.Nothing()); err == nil || !strings.Contains(err.Error(), "want a memcached") {
		t.Errorf("a Redis: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // which accepts and says nothing
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client(t, l.Addr().String()).Do(ctx, memcache.Nothing()); !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a server that says nothing: %v", err)
	}
}

func TestKeysAreListed(t *testing.T) {
	t.Parallel()
	c := client(t, servertest.Memcached(t).Addr())
	var want []string
	for i := range 300 {
		key := fmt.Sprintf("a%%b/ä+%03d", i)
		want = append(want, key)
		says(t, c, requests(memcache.Add(key, nil, 60), memcache.Add(fmt.Sprintf("other%d", i), nil, 60)), memcache.Done, memcache.Done)
	}
	got, err := c.Keys(t.Context(), "a%b/")
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d keys, %v, want %d", len(got), err, len(want))
	}
}

// A server lists for one at a time, and the others wait.
func TestManyList(t *testing.T) {
	t.Parallel()
	c := client(t, servertest.Memcached(t).Addr())
	for i := range 2000 {
		says(t, c, requests(memcache.Add(fmt.Sprint(i), nil, 600)), memcache.Done)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := c.Keys(t.Context(), ""); err != nil || len(got) != 2000 {
				t.Errorf("%d keys, %v; want 2000", len(got), err)
			}
		})
	}
	all.Wait()
}

// A server that stands still is waited for no longer than for any other answer.
func TestAListThatStandsStill(t *testing.T) {
	t.Parallel()
	w := wire.New(t, servertest.Memcached(t).Addr())
	c := clientOf(t, memcache.Server{Addr: w.Addr(), Timeout: time.Second})
	silenced := w.Silence(func(p []byte) bool { return strings.HasPrefix(string(p), "lru_crawler") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if keys, err := c.Keys(ctx, ""); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v; want that it did not answer in time", keys, err)
	}
	<-silenced
}

// A key that somebody asks for at that very moment is listed, too.
func TestABusyKeyIsListed(t *testing.T) {
	t.Parallel()
	addr := servertest.Memcached(t).Addr()
	c, busy := client(t, addr), client(t, addr)
	says(t, c, requests(memcache.Add("busy", nil, 600)), memcache.Done)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for ctx.Err() == nil {
				_, _ = busy.Do(ctx, memcache.Add("busy", nil, 600))
			}
		})
	}
	defer asking.Wait()
	defer cancel()
	lists := 500
	if testing.Short() {
		lists = 50
	}
	for i := range lists {
		if got, err := c.Keys(t.Context(), ""); err != nil || len(got) != 1 {
			t.Fatalf("list %d: %q, %v; want one key", i, got, err)
		}
	}
}

func TestAClosedClient(t *testing.T) {
	t.Parallel()
	c := client(t, servertest.Memcached(t).Addr())
	says(t, c, requests(memcache.Nothing()), memcache.Alive)
	c.Close()
	if _, err := ask(t, c, memcache.Nothing()); !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("after Close: %v", err)
	}
}
