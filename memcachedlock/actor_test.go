package memcachedlock_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/storetest"
)

const patience = 30 * time.Second // for what may take a moment

func mutex(name string) driver.Claim {
	c := storetest.Mutex(name)
	c.Note = "a note"
	return c
}

// raw talks to a server beside all drivers.
type raw struct {
	*testing.T
	*memcache.Client
}

func beside(t *testing.T, addr string) raw {
	t.Helper()
	c := memcache.New(memcache.Server{Addr: addr, Timeout: patience})
	t.Cleanup(c.Close)
	return raw{t, c}
}

// says makes a request and returns its answer.
func (r raw) says(request *memcache.Request) memcache.Reply {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	reply, err := r.Do(ctx, request)
	if err != nil {
		r.Fatal(err)
	}
	return reply
}

// command sends a command of the old protocol, which answers with one line.
func command(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte(text + "\r\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 512)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}
