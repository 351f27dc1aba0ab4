package web_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// A viewer who does not read is dropped, and nobody else waits for him.
func TestSlowViewerIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{})
		slow, other := follow(t, h, "/v1/watch?name=m"), follow(t, h, "/v1/watch?name=m")
		slow.events()
		slow.stop()
		c := client(t, store, nil)
		for range 5 {
			other.events()
			l := hold(t, c, "m")
			time.Sleep(time.Second)
			has(t, other.newest(t, "line"), `"state":"holds"`)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			has(t, other.newest(t, "line"), `"claims":[]`)
		}
		time.Sleep(10 * time.Second)
		select {
		case <-slow.ended:
		default:
			t.Error("the viewer who does not read is still served")
		}
	})
}

// Of a line that changes a thousand times a second a viewer is told a few times, and the last time
// of how it stands.
func TestFastChangesAreToldTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{})
		v := follow(t, h, "/v1/watch?name=m")
		c := client(t, store, nil)
		for range 1000 {
			l := hold(t, c, "m")
			time.Sleep(time.Millisecond)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		}
		last := hold(t, c, "m")
		time.Sleep(time.Second)
		all := v.events()
		if len(all) < 4 || len(all) > 10 {
			t.Errorf("the viewer was told %d times in two seconds, want 4 a second at most", len(all))
		}
		has(t, all[len(all)-1].data, `"`+token(last)+`"`)
	})
}

// There are no more streams than the server allows, and one principal does not have them all.
func TestStreamsAreLimited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := handler(t, memlock.New(), web.Options{Streams: 4, Authorize: func(r *http.Request) (web.Principal, error) {
			return web.Principal{Name: r.Header.Get("Authorization"), Read: []string{""}}, nil
		}})
		open := func(who string) *viewer {
			return follow(t, h, "/v1/watch", func(r *http.Request) { r.Header.Set("Authorization", who) })
		}
		first := open("ann")
		open("ann")
		if third := open("ann"); third.status != http.StatusTooManyRequests || third.header.Get("Retry-After") == "" {
			t.Errorf("the third stream of one of four: status %d", third.status)
		}
		open("bob")
		open("bob")
		if fifth := open("eve"); fifth.status != http.StatusTooManyRequests {
			t.Errorf("the fifth stream of four: status %d", fifth.status)
		}
		first.leave()
		<-first.ended
		if again := open("eve"); again.status != 0 {
			t.Errorf("after one has left: status %d", again.status)
		}
	})
}

// A viewer who may look no more is sent nothing more, and one whose rights have changed what he may
// read.
func TestRightsEndDuringAStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		var now atomic.Pointer[web.Principal]
		now.Store(&web.Principal{Read: []string{""}})
		h := handler(t, store, web.Options{Authorize: func(*http.Request) (web.Principal, error) {
			if p := now.Load(); p != nil {
				return *p, nil
			}
			return web.Principal{}, errors.Join(web.ErrUnauthenticated)
		}})
		c := client(t, store, nil)
		hold(t, c, "a")
		hold(t, c, "b")
		one, all := follow(t, h, "/live?page=line&name=b"), follow(t, h, "/v1/watch")
		has(t, all.last(t, "lines"), `"a"`, `"b"`)
		now.Store(&web.Principal{Read: []string{"a"}})
		time.Sleep(16 * time.Second)
		hold(t, c, "b2")
		hold(t, c, "a2")
		time.Sleep(16 * time.Second)
		hasNot(t, all.newest(t, "lines"), `"name":"b`)
		if e := one.events(); len(e) == 0 || e[len(e)-1].name != "end" {
			t.Errorf("who may not read that name any more was told %v last", e)
		}
		now.Store(nil)
		time.Sleep(16 * time.Second)
		for _, v := range []*viewer{one, all} {
			select {
			case <-v.ended:
			default:
				t.Error("a stream goes on without a right")
			}
		}
	})
}

// Close ends the streams and what is asked of the store, also of one that hangs; requests that come
// later are refused.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{})
		var all []*viewer
		for _, target := range []string{"/v1/watch", "/v1/watch?name=m", "/live?page=list"} {
			all = append(all, follow(t, h, target))
		}
		defer store.Stall()()
		time.Sleep(5 * time.Second)
		began := time.Now()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("it took %v", d)
		}
		for _, v := range all {
			<-v.ended
		}
		synctest.Wait()
		has(t, body(t, get(t, h, "/v1/lines"), http.StatusServiceUnavailable), "#not-sent", "closing")
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}
