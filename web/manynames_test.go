//go:build unix

package web_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/web"
)

// manyNames is a Redis with many names that are held, order/0 with many claims that wait for it.
type manyNames struct {
	url     string
	session driver.Session
}

const namesHeld, waitsForOne = 10_000, 1000 // multiples of 200

func newManyNames(t *testing.T) *manyNames {
	t.Helper()
	c := &manyNames{url: servertest.Redis(t).URL() + "?timeout=60s"} // for slow machines
	d := redistest.Open(t, c.url)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	var err error
	// Nobody renews it within the test.
	c.session, err = d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Hour, Owner: driver.Owner{Name: "worker-17", Host: "app-3.example.org", User: "deploy", PID: 4711}})
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < namesHeld+waitsForOne; from += 200 {
		var all sync.WaitGroup
		for i := from; i < from+200; i++ {
			all.Go(func() {
				name := fmt.Sprintf("order/%d", i)
				if i >= namesHeld {
					name = "order/0"
				}
				if _, err := c.session.Acquire(t.Context(), exclusive(name)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	return c
}

func exclusive(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

// asked is a store that counts what it is asked for.
type asked struct {
	*redislock.Driver
	lists, looks, watches atomic.Int64
	longest               atomic.Int64 // that a list took, in ns
}

func (a *asked) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	a.lists.Add(1)
	began := time.Now()
	lines, err := a.Driver.Lines(ctx, prefix)
	a.longest.Store(max(a.longest.Load(), int64(time.Since(began)))) // a list at a time is read
	return lines, err
}

func (a *asked) Line(ctx context.Context, name string) (driver.Line, error) {
	a.looks.Add(1)
	return a.Driver.Line(ctx, name)
}

func (a *asked) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	a.watches.Add(1)
	return a.Driver.Watch(ctx, name)
}

// pages is a new server of pages of these names, which has asked for nothing yet. It ends with what
// stop does.
func (c *manyNames) pages(t *testing.T) (base string, store *asked, stop func()) {
	t.Helper()
	store = &asked{Driver: redistest.Open(t, c.url).(*redislock.Driver)}
	h, err := web.New([]web.Store{{Name: "main", URL: c.url, Driver: store}}, &web.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	return s.URL, store, func() {
		_ = h.Close()
		s.Close()
		_ = store.Close(context.Background())
	}
}

// 10,000 names, and 1,000 claims that wait for one of them: the first page that somebody opens has
// its rows, and no page is large. docs/web.md has their times.
func TestFirstPageOfManyNames(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand names: make proof")
	}
	c := newManyNames(t)
	timed := func(target string) (text string) {
		began, used := time.Now(), cpuTime(t)
		text = fetch(t, target)
		t.Logf("%s: %v, %v of this process's CPU, %d kB", target[strings.Index(target[7:], "/")+7:], time.Since(began).Round(time.Millisecond), (cpuTime(t) - used).Round(time.Millisecond), len(text)/1000)
		if len(text) >= 1<<20 {
			t.Errorf("%s has %d bytes, want less than 1 MiB", target, len(text))
		}
		return text
	}
	for range 3 {
		base, store, stop := c.pages(t)
		text := timed(base + "/")
		if strings.Contains(text, "is being read") { // where the list takes more than a second
			redistest.Until(t, patience, "a page without rows", func() bool {
				text = timed(base + "/")
				return !strings.Contains(text, "is being read")
			})
			if took := time.Duration(store.longest.Load()); took < time.Second/2 {
				t.Errorf("the first page had no rows, although the list took %v", took)
			}
		}
		has(t, text, "10,000 names, 10,000 held, 1,000 claims wait", `data-key="&#34;order/0&#34;"`)
		if n := strings.Count(text, "<tr data-key="); n != 200 {
			t.Errorf("the first page has %d rows, want 200", n)
		}
		if n := store.lists.Load(); n != 1 {
			t.Errorf("the first page has read %d lists", n)
		}
		timed(base + "/?after=order/5")
		has(t, timed(base+"/contention"), "order/0")
		has(t, timed(base+"/line?name=order/0"), "1,000 wait")
		timed(base + "/line?all=1&name=order/0")
		t.Logf("the list took %v", time.Duration(store.longest.Load()).Round(time.Millisecond))
		stop()
	}
}

// 200 pages that follow a store of 10,000 names in which a hundred a second change ask the store
// for what three ask for. docs/web.md has what they cost: all is in this process, the browsers and
// who changes the names, too.
func TestManyLivePages(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of live pages: make proof")
	}
	c := newManyNames(t)
	for _, pages := range []int{0, 3, 200} {
		c.live(t, pages, 10*time.Second)
	}
}

func (c *manyNames) live(t *testing.T, pages int, d time.Duration) {
	t.Helper()
	base, store, stop := c.pages(t)
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { c.change(ctx, t) })
	got := make([]atomic.Int64, pages)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i := range pages {
		target := base + "/live?store=main&page=" + []string{"list", "contention", "line&name=order/0"}[i%3]
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer answer.Body.Close()
			_, _ = io.Copy(counter{&got[i]}, answer.Body)
		})
	}
	for i := range got {
		redistest.Until(t, patience, "a page that was told nothing", func() bool { return got[i].Load() > 1000 })
	}
	began, used := time.Now(), cpuTime(t)
	lists, looks := store.lists.Load(), store.looks.Load()
	rest := time.NewTimer(d)
	defer rest.Stop()
	<-rest.C
	used, took := cpuTime(t)-used, time.Since(began)
	lists, looks = store.lists.Load()-lists, store.looks.Load()-looks
	sent := int64(0)
	for i := range got {
		sent += got[i].Load()
	}
	t.Logf("%d pages: %.2f of a core; %d lists, %d looks and %d watches in %v; %d kB a page", pages, used.Seconds()/took.Seconds(), lists, looks,
		store.watches.Load(), took.Round(time.Second), sent/int64(max(pages, 1))/1000)
	seconds := int64(took / time.Second)
	if lists > seconds+2 || looks > seconds/2+2 || store.watches.Load() > 1 {
		t.Errorf("%d pages: %d lists, %d looks and %d watches in %v, want no more than a list a second, a look in two, and one watch",
			pages, lists, looks, store.watches.Load(), took)
	}
}

// change takes and releases names, a hundred a second.
func (c *manyNames) change(ctx context.Context, t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		claim := exclusive(fmt.Sprintf("job/%d", i%100))
		_, err := c.session.Acquire(ctx, claim)
		<-tick.C
		if err == nil {
			_, err = c.session.Release(context.WithoutCancel(ctx), claim)
		}
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
	}
}

// counter counts bytes.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// cpuTime is the time of processors that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
