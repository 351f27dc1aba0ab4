package web_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/web"
)

// redisPage is a handler over a Redis of its own, as a server on a port of this machine.
func redisPage(t *testing.T) (server *servertest.Server, base, url string) {
	t.Helper()
	server, err := servertest.Start(t.Context(), servertest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	url = "redis://" + server.Addr()
	d := redistest.Open(t, url)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	h, err := web.New([]web.Store{{Name: "main", URL: "redis://:hunter2@" + server.Addr(), Driver: d}}, &web.Options{
		Authorize: everything, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return server, s.URL, url
}

// tail reads a stream, and tells when it has said all of some words since the last time.
type tail struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *tail) says(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	for _, w := range words {
		i := strings.Index(text, w)
		if i < 0 {
			return false
		}
		text = text[i+len(w):]
	}
	l.text.Reset()
	return true
}

func fetch(t *testing.T, target string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return body(t, answer, http.StatusOK)
}

// tailOf follows a stream over the wire until the test ends.
func tailOf(t *testing.T, target string) *tail {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	l, done := &tail{}, make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(l, answer.Body)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = answer.Body.Close()
	})
	return l
}

const patience = 30 * time.Second

// On a real store: a name is found, a wait is seen to become a hold, a stuck holder is broken and
// the next gets in, the store restarts.
func TestRedis(t *testing.T) {
	t.Parallel()
	server, base, url := redisPage(t)
	quiet := slog.New(slog.DiscardHandler)
	a := redistest.OpenClient(t, url, &interlock.Options{Owner: "first", Logger: quiet})
	b := redistest.OpenClient(t, url, &interlock.Options{Owner: "second", Logger: quiet})
	l := hold(t, a, "coupons/42")
	has(t, fetch(t, base+"/?prefix=coupons/"), "1 name with", "first")
	hasNot(t, fetch(t, base+"/stores"), "hunter2")
	lines, one := tailOf(t, base+"/v1/watch"), tailOf(t, base+"/v1/watch?name=coupons/42")
	redistest.Until(t, patience, "the line to be told", func() bool { return one.says(`"state":"holds"`) })

	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan *interlock.Lease, 1)
	go func() {
		next, err := b.Mutex("coupons/42").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- next
	}()
	redistest.Until(t, patience, "the wait to be told", func() bool { return one.says(`"state":"holds"`, `"state":"waits"`) })
	c := redistest.Claims(t, url, "coupons/42")[0]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/break", strings.NewReader(fmt.Sprintf(`{"name":"coupons/42","id":%q,"fence":"%d"}`, c.PublicID, c.Fence)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	has(t, body(t, answer, http.StatusOK), `{"state":"`)
	_ = answer.Body.Close()
	<-l.Context().Done()
	_ = l.Release()
	next := redistest.Receive(t, patience, "the next to get in", got)
	redistest.Until(t, patience, "the next to be told", func() bool { return one.says(`"name":"second"`) })
	has(t, fetch(t, base+"/line?name=coupons/42"), "root broke the claim of first")

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	redistest.Until(t, patience, "the name's gap to be told", func() bool { return one.says("event: gap") })
	redistest.Until(t, patience, "the list's gap to be told", func() bool { return lines.says("event: gap") })
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	redistest.Until(t, patience, "the store to be back", func() bool { return one.says("event: line") })
	redistest.Until(t, patience, "the list to be back", func() bool { return lines.says("event: lines") })
	cancel()
	if next != nil {
		_ = next.Release()
	}
}
