package web_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// viewer is a browser that follows a stream: the writer of its answer, which it may stop reading.
type viewer struct {
	ctx   context.Context // of the browser
	leave func()          // closes it
	ended chan struct{}   // closed when the server is done with it

	mu       sync.Mutex
	header   http.Header
	status   int
	got      bytes.Buffer
	deadline time.Time
	stuck    bool
}

// follow opens a stream.
func follow(t *testing.T, h http.Handler, target string, set ...func(*http.Request)) *viewer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &viewer{ctx: ctx, leave: cancel, ended: make(chan struct{}), header: http.Header{}}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	r.Host = "localhost"
	for _, f := range set {
		f(r)
	}
	go func() {
		defer close(v.ended)
		h.ServeHTTP(v, r)
	}()
	synctest.Wait()
	return v
}

func (v *viewer) Header() http.Header { return v.header }

func (v *viewer) WriteHeader(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status = status
}

func (v *viewer) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stuck {
		ctx, cancel := v.ctx, func() {}
		if !v.deadline.IsZero() {
			ctx, cancel = context.WithDeadline(ctx, v.deadline)
		}
		v.mu.Unlock()
		<-ctx.Done()
		cancel()
		v.mu.Lock()
		return 0, os.ErrDeadlineExceeded
	}
	return v.got.Write(b)
}

func (v *viewer) FlushError() error { return nil }

func (v *viewer) SetWriteDeadline(at time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deadline = at
	return nil
}

// stop ends the reading of the browser.
func (v *viewer) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stuck = true
}

// event is one message of a stream.
type event struct{ name, data string }

// events returns what has come since the last call.
func (v *viewer) events() (all []event) {
	synctest.Wait()
	v.mu.Lock()
	text := v.got.String()
	v.got.Reset()
	v.mu.Unlock()
	for m := range strings.SplitSeq(text, "\n\n") {
		var e event
		for l := range strings.SplitSeq(m, "\n") {
			if name, ok := strings.CutPrefix(l, "event: "); ok {
				e.name = name
			} else if data, ok := strings.CutPrefix(l, "data: "); ok {
				e.data += data + "\n"
			}
		}
		if e.name != "" {
			all = append(all, e)
		}
	}
	return all
}

// newest returns the last event of that name since the last call.
func (v *viewer) newest(t *testing.T, name string) string {
	t.Helper()
	all := v.events()
	for _, e := range slices.Backward(all) {
		if e.name == name {
			return e.data
		}
	}
	t.Fatalf("the stream said %.2000v, want a %s", all, name)
	return ""
}

// last returns the newest event since the last call, which must be of that name.
func (v *viewer) last(t *testing.T, name string) string {
	t.Helper()
	all := v.events()
	if len(all) == 0 || all[len(all)-1].name != name {
		t.Fatalf("the stream said %.2000v last, want a %s", all, name)
	}
	return all[len(all)-1].data
}
