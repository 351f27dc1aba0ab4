package redisfence_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/redisfence"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	_ "github.com/interlock-go/interlock/redislock"
)

// L15: a holder looks whether it still holds, does, and is stopped before it writes. The lock passes on meanwhile. What it
// then writes without its token takes the next one's write away; what it writes with its token is refused. The same goes
// for whoever is overtaken between two requests of one write: there are no two.
func TestL15_CheckedThenWritten(t *testing.T) {
	server := servertest.Redis(t)
	client := func() *interlock.Client {
		c, err := interlock.Open(t.Context(), server.URL(), &interlock.Options{TTL: time.Minute, Grace: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	lock := func(c *interlock.Client) *interlock.Lease {
		l, err := c.Mutex("stock").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	g := redisfence.New(open(t, server))
	write := func(l *interlock.Lease, value string) error {
		server.MustDo(t, "SET", "bare", value)
		return g.Set(t.Context(), "stock", l.Fence(), "guarded", value)
	}

	first := lock(client())
	if err := g.Claim(t.Context(), "stock", first.Fence()); err != nil {
		t.Fatal(err)
	}
	if err := first.Err(); err != nil {
		t.Fatalf("the first looks, and has lost: %v", err)
	}
	server.MustDo(t, "DEL", "stock") // as if the lease had ended while the first was stopped
	second := lock(client())
	if err := write(second, "second"); err != nil {
		t.Errorf("the second writes: %v", err)
	}
	if err := write(first, "first"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the first writes after the second: %v, want %v", err, fence.ErrStale)
	}
	if bare, guarded := server.MustDo(t, "GET", "bare"), server.MustDo(t, "GET", "guarded"); bare != "first" || guarded != "second" {
		t.Errorf("without tokens the %s has written last, with them the %s: want that the second's write is lost without and stands with them", bare, guarded)
	}

	// Between each two requests of one writer another one claims and writes.
	w := wire.New(t, server.Addr())
	conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{w.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	slow := redisfence.New(conn)
	token := second.Fence()
	if err := slow.Set(t.Context(), "stock", token, "guarded", "before"); err != nil { // so that the server knows the script
		t.Fatal(err)
	}
	requests := 0
	w.Filter(wire.Requests, func(frame []byte) bool {
		if !bytes.Contains(frame, []byte("guarded")) && !bytes.Contains(frame, []byte("fence:")) {
			return true
		}
		if requests++; requests == 2 {
			if err := g.Set(t.Context(), "stock", token+1, "guarded", "newer"); err != nil {
				t.Errorf("the newer one writes: %v", err)
			}
		}
		return true
	})
	err = slow.Set(t.Context(), "stock", token, "guarded", "older")
	if value := server.MustDo(t, "GET", "guarded"); requests != 1 && value == "older" {
		t.Errorf("token %d was checked, %d claimed and wrote, and then %d wrote in its turn: %v", token, token+1, token, err)
	} else if err != nil || requests != 1 {
		t.Errorf("a write takes %d requests, %v: want one", requests, err)
	}
	w.Filter(wire.Requests, nil)
}
