package web_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// handler returns a handler of one store, main, which is closed when the test ends.
func handler(t *testing.T, d driver.Driver, o web.Options) *web.Handler {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h, err := web.New([]web.Store{{Name: "main", URL: "mem:", Driver: d}}, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// client returns a client of the store, as another process has it.
func client(t *testing.T, d *memlock.Driver, o *interlock.Options) *interlock.Client {
	t.Helper()
	if o == nil {
		o = &interlock.Options{}
	}
	o.Logger = slog.New(slog.DiscardHandler)
	c, err := interlock.New(d.Share(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hold takes a name.
func hold(t *testing.T, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	l, err := c.Mutex(name).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wait makes a client wait for a name until ctx ends; if it gets the name, it holds it until then.
func wait(ctx context.Context, t *testing.T, c *interlock.Client, name string) {
	t.Helper()
	go func() {
		if l, err := c.Mutex(name).Lock(ctx); err == nil {
			<-ctx.Done()
			_ = l.Release()
		}
	}()
	synctest.Wait()
}

// get makes a request as a program on this machine does.
func get(t *testing.T, h http.Handler, target string) *http.Response {
	t.Helper()
	return do(h, httptest.NewRequest(http.MethodGet, target, nil))
}

func do(h http.Handler, r *http.Request) *http.Response {
	if r.Host == "example.com" { // what httptest has where nothing is said
		r.Host = "localhost"
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// body returns what was answered, which must have that status.
func body(t *testing.T, r *http.Response, status int) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != status {
		t.Errorf("status %d, want %d:\n%s", r.StatusCode, status, b)
	}
	return string(b)
}

// has fails unless a text has all of these words.
func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("want %q in\n%s", w, text)
		}
	}
}

// hasNot fails if a text has one of these words.
func hasNot(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("want no %q in\n%s", w, text)
		}
	}
}

func TestListPageShowsWhoHoldsAndWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{})
		a, b := client(t, store, &interlock.Options{Owner: "web-7"}), client(t, store, nil)
		l := hold(t, a, "coupons/42")
		hold(t, b, "feed")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait(ctx, t, b, "coupons/42")

		page := body(t, get(t, h, "/"), http.StatusOK)
		has(t, page, "2 names, 2 held, 1 claim waits", `href="line?name=coupons%2F42&amp;store=main"`, "web-7", ">"+token(l)+"<", "read-only")
		page = body(t, get(t, h, "/?prefix=coupons/"), http.StatusOK)
		has(t, page, "1 name with", "coupons/42")
		hasNot(t, page, ">feed<")
	})
}
