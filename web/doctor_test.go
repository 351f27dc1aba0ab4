package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// patient is a store that brings a check of its own.
type patient struct {
	*memlock.Driver
	takes time.Duration
	exams atomic.Int32
	err   atomic.Pointer[error]
}

func (p *patient) Examine(context.Context, driver.Exam) ([]driver.Finding, error) {
	time.Sleep(p.takes)
	p.exams.Add(1)
	if err := p.err.Load(); err != nil {
		return nil, *err
	}
	return []driver.Finding{
		{Title: "disk", Server: "10.0.0.7", Seen: "it is there"},
		{Title: "rights", Level: driver.LevelSkip, Seen: "the server does not tell <b>"},
		{Code: "R4", Title: "ends", Level: driver.LevelWarn, Seen: `the lock "b/secret" goes in 3h`, Why: "others wait as long", Mend: `interlock break "b/secret"`},
	}, nil
}

// doctorOf is what programs are told of the only store.
func doctorOf(t *testing.T, h http.Handler) (d *struct {
	At        time.Time
	Worst     string
	Guarantee string
	Failure   string
	Findings  []driver.Finding
},
) {
	t.Helper()
	var answer struct {
		Stores []struct{ Doctor json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body(t, get(t, h, "/v1/stores"), http.StatusOK)), &answer); err != nil {
		t.Fatal(err)
	}
	if text := answer.Stores[0].Doctor; text != nil {
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// What the doctor finds stands on the page of the stores, and is told to programs.
func TestTheDoctorsFindingsAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := handler(t, &patient{Driver: memlock.New()}, web.Options{})
		page := body(t, get(t, h, "/stores"), http.StatusOK)
		has(t, page, "It keeps the promises of its page, for now: ends.", `<b class="waits">warn</b>`, "R4", "others wait as long", "interlock break &#34;b/secret&#34;",
			"the server does not tell &lt;b&gt;", "10.0.0.7", `<b class="held">ok</b>`)
		hasNot(t, page, "is being examined")
		d := doctorOf(t, h)
		if d == nil || d.Worst != "warn" || d.Failure != "" || d.Guarantee == "" || len(d.Findings) != 6 {
			t.Fatalf("%+v; want three checks of its own, and the three of every store", d)
		}
		if f := d.Findings[5]; f.Level != driver.LevelWarn || f.Title != "ends" || f.Mend == "" {
			t.Errorf("%+v, want the last of its own", f)
		}
	})
}

// A store is examined once for all who look, no more often than once a minute or fifty times as
// long as that took, and not at all while nobody does.
func TestAStoreIsExaminedOnceForAll(t *testing.T) {
	for takes, pace := range map[time.Duration]time.Duration{0: time.Minute, 5 * time.Second: 250 * time.Second} {
		bubble(t, func(t *testing.T) {
			store := &patient{Driver: memlock.New(), takes: takes}
			h := handler(t, store, web.Options{})
			time.Sleep(time.Hour)
			if n := store.exams.Load(); n != 0 {
				t.Errorf("it was examined %d times before anybody looked", n)
			}
			look := func(target string) {
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() { body(t, get(t, h, target), http.StatusOK) })
				}
				all.Wait()
			}
			look("/stores")
			look("/v1/stores")
			time.Sleep(pace - time.Second)
			look("/stores")
			if n := store.exams.Load(); n != 1 {
				t.Errorf("it was examined %d times for all who looked, want once", n)
			}
			calls := store.Calls()
			look("/stores")
			if n := store.Calls() - calls; n > 1 {
				t.Errorf("it was asked %d times more, want at most whether it answers", n)
			}
			time.Sleep(pace)
			look("/v1/stores")
			if n := store.exams.Load(); n != 2 {
				t.Errorf("it was examined %d times, want once more when it was due", n)
			}
			time.Sleep(time.Hour)
			if n := store.exams.Load(); n != 2 {
				t.Errorf("it was examined %d times while nobody looked", n-2)
			}
		})
	}
}

// Nobody waits for an examination that takes long; the page says so, and has it later. A handler
// that is closed waits for it.
func TestAnExaminationThatTakesLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &patient{Driver: memlock.New(), takes: 12 * time.Second}
		h := handler(t, store, web.Options{})
		began := time.Now()
		has(t, body(t, get(t, h, "/stores"), http.StatusOK), "It is being examined", "It answers")
		if waited := time.Since(began); waited > 2*time.Second {
			t.Errorf("the page came after %v", waited)
		}
		if d := doctorOf(t, h); d != nil {
			t.Errorf("%+v before it is over", d)
		}
		time.Sleep(12 * time.Second)
		has(t, body(t, get(t, h, "/stores"), http.StatusOK), "others wait as long")
		time.Sleep(time.Hour)
		get(t, h, "/stores")
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := store.exams.Load(); n != 2 {
			t.Errorf("%d examinations have ended, want 2", n)
		}
		body(t, get(t, h, "/v1/stores"), http.StatusServiceUnavailable)
	})
}

// What was seen may have names in it, which are for those who may read every name; so may why an
// examination is not whole.
func TestFindingsNameNobodyToOthers(t *testing.T) {
	for who, want := range map[string]bool{"": true, "a/": false} {
		bubble(t, func(t *testing.T) {
			store := &patient{Driver: memlock.New()}
			h := handler(t, store, web.Options{Authorize: func(*http.Request) (web.Principal, error) { return web.Principal{Read: []string{who}}, nil }})
			both := body(t, get(t, h, "/stores"), http.StatusOK) + body(t, get(t, h, "/v1/stores"), http.StatusOK)
			has(t, both, "others wait as long", "for now: ends", `"title":"ends"`)
			if want {
				has(t, both, "b/secret", "10.0.0.7")
			} else {
				hasNot(t, both, "b/secret", "10.0.0.7")
			}
			gone := errors.New("what stands at b/secret is damaged")
			store.err.Store(&gone)
			time.Sleep(time.Hour)
			has(t, body(t, get(t, h, "/stores"), http.StatusOK), "It is not whole")
			d := doctorOf(t, h)
			if d == nil || d.Failure == "" {
				t.Fatalf("%+v, want why it is not whole", d)
			}
			if want {
				has(t, d.Failure, "b/secret")
			} else {
				hasNot(t, d.Failure, "b/secret")
			}
		})
	}
}
