package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// busy takes and releases names for as long as d.
func busy(t *testing.T, c *interlock.Client, d time.Duration) {
	t.Helper()
	for i := range int(d / (500 * time.Millisecond)) {
		l := hold(t, c, fmt.Sprintf("job/%d", i%3))
		time.Sleep(500 * time.Millisecond)
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}

// However many look, the store is asked the same.
func TestStoreIsAskedOnceForAll(t *testing.T) {
	for _, target := range []string{"/v1/watch", "/live?store=main&page=list", "/v1/watch?name=job/1", "/live?store=main&page=line&name=job/1", "/live?store=main&page=contention"} {
		asked := map[int]int{}
		for _, viewers := range []int{1, 200} {
			bubble(t, func(t *testing.T) {
				store := memlock.New()
				h := handler(t, store, web.Options{})
				all := make([]*viewer, viewers)
				for i := range all {
					all[i] = follow(t, h, target)
				}
				busy(t, client(t, store, nil), 20*time.Second)
				time.Sleep(250 * time.Millisecond) // now nothing is due
				asked[viewers] = store.Calls()
				for i, v := range all {
					if len(v.events()) == 0 {
						t.Errorf("%s: viewer %d of %d was told nothing", target, i, viewers)
					}
					v.leave()
				}
				synctest.Wait()
				before := store.Calls()
				time.Sleep(time.Minute)
				if after := store.Calls(); after != before {
					t.Errorf("%s: the store was asked %d times while nobody looked", target, after-before)
				}
			})
		}
		if asked[1] != asked[200] || asked[1] == 0 || asked[1] > 100 {
			t.Errorf("%s: the store was asked %d times for one viewer and %d times for 200, want the same, and few", target, asked[1], asked[200])
		}
	}
}

// Pages that are asked for again and again are shown the list that there is.
func TestListIsReadAtAPace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := &slowStore{Driver: memlock.New(), takes: 100 * time.Millisecond}
		h := handler(t, slow, web.Options{})
		for range 30 {
			get(t, h, "/")
			get(t, h, "/contention")
			get(t, h, "/v1/lines")
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if slow.lists < 3 || slow.lists > 4 {
			t.Errorf("the list was read %d times in three seconds, want one reading a second, ten times what it takes", slow.lists)
		}
	})
}

// slowStore is a store whose list takes its time.
type slowStore struct {
	*memlock.Driver
	takes time.Duration
	lists int
	err   error
}

func (s *slowStore) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	s.lists++
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l, err := s.Driver.Lines(ctx, prefix)
	return l, errors.Join(err, s.err)
}

// A page waits a second for the first list, and has its rows then. After that it says that the list
// is being read, or shows the one before.
func TestPageWaitsForTheFirstList(t *testing.T) {
	for _, target := range []string{"/", "/contention"} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			slow := &slowStore{Driver: store, takes: 900 * time.Millisecond}
			h := handler(t, slow, web.Options{})
			c := client(t, store, nil)
			hold(t, c, "m")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wait(ctx, t, client(t, store, nil), "m")
			page := func() (text string, took time.Duration) {
				began := time.Now()
				text = body(t, get(t, h, target), http.StatusOK)
				return text, time.Since(began)
			}
			text, took := page()
			has(t, text, `data-key="&#34;m&#34;"`)
			hasNot(t, text, "refresh\"", "is being read")
			if took != slow.takes {
				t.Errorf("%s: the first page took %v, want it with the list after %v", target, took, slow.takes)
			}

			wait(ctx, t, client(t, store, nil), "n")
			time.Sleep(10 * time.Second) // the list is due again
			text, took = page()
			has(t, text, `data-key="&#34;m&#34;"`)
			if hasNot(t, text, `data-key="&#34;n&#34;"`, "refresh\"", "is being read"); took != 200*time.Millisecond {
				t.Errorf("%s: the page took %v although there was a list, want 200ms", target, took)
			}
		})
	}
}

// A page is there soon, also where the list is not.
func TestPageDoesNotWaitForASlowList(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, &slowStore{Driver: store, takes: 5 * time.Second}, web.Options{})
		hold(t, client(t, store, nil), "m")
		began := time.Now()
		page := body(t, get(t, h, "/"), http.StatusOK)
		has(t, page, "The list is being read", `http-equiv="refresh"`)
		if d := time.Since(began); d != time.Second {
			t.Errorf("it took %v, want a second", d)
		}
		v := follow(t, h, "/live?store=main&page=list")
		if all := v.events(); len(all) > 0 {
			t.Errorf("the stream said %v of a list that was not read", all)
		}
		time.Sleep(5 * time.Second)
		has(t, v.last(t, "page"), "1 name, 1 held", `data-key="&#34;m&#34;"`)
		hasNot(t, body(t, get(t, h, "/"), http.StatusOK), "refresh\"", "is being read")
	})
}

// A list that lacks something says so, and what it lacks is not taken for gone.
func TestPartialListSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		slow := &slowStore{Driver: store}
		h := handler(t, slow, web.Options{})
		hold(t, client(t, store, nil), "m")
		get(t, h, "/")
		time.Sleep(2 * time.Second)
		slow.err = errors.New("master 2 does not answer")
		has(t, body(t, get(t, h, "/"), http.StatusOK), "The list is not complete: master 2 does not answer", `data-key="&#34;m&#34;"`)
		has(t, body(t, get(t, h, "/v1/lines"), http.StatusOK), `"partial":"master 2 does not answer"`)
	})
}

// A store that goes away while pages are open is said to be away, and comes back by itself.
func TestStoreGoesAwayAndComesBack(t *testing.T) {
	for what, away := range map[string]func(*memlock.Driver) (back func()){
		"fails": func(d *memlock.Driver) func() {
			d.Fail(fmt.Errorf("connection refused: %w", driver.ErrNotSent))
			return func() { d.Fail(nil) }
		},
		"hangs": func(d *memlock.Driver) func() { return d.Stall() },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := memlock.New()
				h := handler(t, store, web.Options{})
				c := client(t, store, nil)
				hold(t, c, "m")
				list, one := follow(t, h, "/live?store=main&page=list"), follow(t, h, "/live?store=main&page=line&name=m")
				lines, name := follow(t, h, "/v1/watch"), follow(t, h, "/v1/watch?name=m")
				has(t, list.last(t, "page"), `data-key="&#34;m&#34;"`)
				has(t, one.last(t, "page"), "Held by")
				lines.last(t, "lines")
				name.last(t, "line")

				back := away(store)
				time.Sleep(time.Minute)
				has(t, list.newest(t, "page"), "The list could not be read since", `data-key="&#34;m&#34;"`)
				has(t, one.last(t, "page"), "The store does not answer since", "Held by")
				has(t, lines.last(t, "gap"), `"since":"2000-01-01T00:0`)
				name.last(t, "gap")
				has(t, body(t, get(t, h, "/stores"), http.StatusOK), "The store does not answer")
				has(t, body(t, get(t, h, "/v1/lines"), http.StatusOK), `"failure":{"since":`)

				back()
				hold(t, c, "n")
				time.Sleep(time.Minute)
				hasNot(t, list.newest(t, "page"), "could not be read")
				hasNot(t, body(t, get(t, h, "/"), http.StatusOK), "could not be read")
				has(t, body(t, get(t, h, "/"), http.StatusOK), `data-key="&#34;n&#34;"`)
				hasNot(t, one.last(t, "page"), "does not answer")
				has(t, lines.last(t, "lines"), `"n"`)
				name.last(t, "line")
				has(t, body(t, get(t, h, "/stores"), http.StatusOK), "It answers")
			})
		})
	}
}

// blind is a store of which only some is known.
type blind struct{ driver.Driver }

// unlisted lists nothing and tells of nothing.
type unlisted struct{ driver.Driver }

func (u unlisted) Lines(context.Context, string) ([]driver.Line, error) {
	return nil, fmt.Errorf("memcached lists no keys: %w", errors.ErrUnsupported)
}

func (u unlisted) Line(ctx context.Context, name string) (driver.Line, error) {
	return u.Driver.(driver.Inspector).Line(ctx, name)
}

func (u unlisted) Break(ctx context.Context, name, id string, fence uint64, now bool) error {
	return u.Driver.(driver.Inspector).Break(ctx, name, id, fence, now)
}

// deaf cannot watch, although it looks so, as a store behind a proxy.
type deaf struct{ *memlock.Driver }

func (d deaf) Watch(context.Context, string) iter.Seq2[driver.Line, error] {
	return func(yield func(driver.Line, error) bool) {
		yield(driver.Line{}, fmt.Errorf("no events here: %w", errors.ErrUnsupported))
	}
}

// What a store cannot do the page says, and does the rest.
func TestStoreThatCannotSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := client(t, store, nil)
		h := handler(t, blind{store}, web.Options{})
		hold(t, c, "m")
		has(t, body(t, get(t, h, "/"), http.StatusOK), "This store does not list its names", "cannot be looked into")
		has(t, body(t, get(t, h, "/stores"), http.StatusOK), "The store cannot do that", "cannot be looked into")
		has(t, body(t, get(t, h, "/line?name=m"), http.StatusOK), "The store cannot do that")
		has(t, body(t, get(t, h, "/v1/lines"), http.StatusNotImplemented), "#unsupported")
		has(t, body(t, get(t, h, "/v1/line?name=m"), http.StatusNotImplemented), "#unsupported")
		follow(t, h, "/v1/watch?name=m").last(t, "gap")
		follow(t, h, "/v1/watch").last(t, "gap")

		h = handler(t, unlisted{store}, web.Options{})
		has(t, body(t, get(t, h, "/"), http.StatusOK), "This store does not list its names", "memcached lists no keys", `action="line"`)
		has(t, body(t, get(t, h, "/contention"), http.StatusOK), "This store does not list its names")
		has(t, body(t, get(t, h, "/line?name=m"), http.StatusOK), "Held by", "it is asked each second")
		has(t, body(t, get(t, h, "/v1/lines"), http.StatusNotImplemented), "memcached lists no keys")

		for _, d := range []driver.Driver{unlisted{store}, deaf{store}} {
			h := handler(t, d, web.Options{})
			v := follow(t, h, "/v1/watch?name=x")
			has(t, v.last(t, "line"), `"claims":[]`)
			l := hold(t, c, "x")
			time.Sleep(2 * time.Second)
			has(t, v.last(t, "line"), `"state":"holds"`)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A renewal is no change that a store tells of. What is left of a claim is shown right all the
// same.
func TestWhatIsLeftIsShownAfterRenewals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{})
		hold(t, client(t, store, nil), "m")
		v := follow(t, h, "/v1/watch?name=m")
		for range 10 {
			time.Sleep(7 * time.Second)
			var l struct {
				Claims []struct {
					Left int `json:"left_ms"`
				}
			}
			if err := json.Unmarshal([]byte(v.last(t, "line")), &l); err != nil || len(l.Claims) != 1 || l.Claims[0].Left < 8000 {
				t.Fatalf("%+v, %v: want a claim with more than half of its 15 s left", l, err)
			}
		}
	})
}
