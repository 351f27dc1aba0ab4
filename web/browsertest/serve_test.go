package browsertest

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/serve"
	_ "github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/redislock"
)

// journal is what a server logs.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// line returns the first line that has all of these words, or nothing.
func (j *journal) line(words ...string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
next:
	for l := range strings.Lines(j.text.String()) {
		for _, w := range words {
			if !strings.Contains(l, w) {
				continue next
			}
		}
		return l
	}
	return ""
}

// server is interlock serve, in this process.
type server struct {
	at  string // without a slash at its end
	log *journal
	end func()
}

// serves starts it. It ends with the test, or before.
func serves(t *testing.T, o serve.Options) *server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	s := &server{log: &journal{}}
	o.Connections, o.Streams = 200, 50
	o.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	ready, ended := make(chan string, 1), make(chan error, 1)
	o.Ready = func(at string) { ready <- at }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- serve.Run(ctx, &o) }()
	s.end = sync.OnceFunc(func() {
		cancel()
		if err := redistest.Receive(t, patience, "the end of the server", ended); err != nil {
			t.Error(err)
		}
	})
	select {
	case at := <-ready:
		s.at = strings.TrimSuffix(at, "/")
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// at returns the address at which a server listens, for the one that comes after it.
func (s *server) address() string { return strings.TrimPrefix(s.at, "http://") }

const token = "anas-token-0123456789"

// tokens writes a file of tokens, with which ana may break what begins with coupons/, and look at
// all.
func tokens(t *testing.T) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(name, []byte("token="+token+" name=ana read=* break=coupons/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// client opens a client as another process has it.
func client(t *testing.T, url, owner string) *interlock.Client {
	t.Helper()
	return redistest.OpenClient(t, url, &interlock.Options{Owner: owner, Logger: slog.New(slog.DiscardHandler)})
}

// hold takes a name that is free.
func hold(t *testing.T, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := c.Mutex(name).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stand has a client stand in line for a name, and returns what it gets.
func stand(t *testing.T, c *interlock.Client, name string) <-chan *interlock.Lease {
	t.Helper()
	got := make(chan *interlock.Lease, 1)
	go func() {
		l, err := c.Mutex(name).Lock(t.Context())
		if err == nil {
			got <- l
		} else if t.Context().Err() == nil {
			t.Error(err)
		}
	}()
	return got
}

// otherHost is an address of this machine that is another host to a browser.
func otherHost(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
