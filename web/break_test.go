package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// breaker returns a handler that lets ann break every name, and its log.
func breaker(t *testing.T, d driver.Driver) (*web.Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return handler(t, d, web.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Authorize: func(*http.Request) (web.Principal, error) {
			return web.Principal{Name: "ann", Read: []string{""}, Break: []string{""}}, nil
		},
	}), &log
}

// breaks asks for a break as programs do.
func breaks(h http.Handler, name string, c driver.Holder, more string) *http.Response {
	r := httptest.NewRequest(http.MethodPost, "/v1/break", strings.NewReader(fmt.Sprintf(`{"store":"main","name":%q,"id":%q,"fence":"%d"%s}`, name, c.PublicID, c.Fence, more)))
	r.Header.Set("Content-Type", "application/json")
	return do(h, r)
}

// submit sends the form of a page.
func submit(h http.Handler, fields url.Values) *http.Response {
	r := httptest.NewRequest(http.MethodPost, "/break", strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return do(h, r)
}

// A break goes from the line over a page that says what it does to the line again, where it is said
// who did it.
func TestBreakByTheForm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h, log := breaker(t, store)
		l := hold(t, client(t, store, nil), "coupons/42")
		c := claimOf(t, store, "coupons/42")
		has(t, body(t, get(t, h, "/line?name=coupons/42"), http.StatusOK), "Break…", fmt.Sprintf("break?fence=%d&amp;id=%s&amp;name=coupons%%2F42&amp;store=main", c.Fence, c.PublicID))
		page := body(t, get(t, h, fmt.Sprintf("/break?store=main&name=coupons/42&id=%s&fence=%d", c.PublicID, c.Fence)), http.StatusOK)
		has(t, page, "Break this claim?", "is told first", "in 15 s at the latest", token(l), `name="now"`)

		r := submit(h, url.Values{"store": {"main"}, "name": {"coupons/42"}, "id": {c.PublicID}, "fence": {token(l)}, "reason": {"stuck <b>"}})
		body(t, r, http.StatusSeeOther)
		if at := r.Header.Get("Location"); at != "/line?name=coupons%2F42&store=main" {
			t.Errorf("it goes on at %q", at)
		}
		<-l.Context().Done()
		if !errors.Is(l.Err(), driver.ErrBroken) {
			t.Errorf("the lease ended by %v, want that it was broken", l.Err())
		}
		has(t, body(t, get(t, h, "/line?name=coupons/42"), http.StatusOK), "ann broke the claim of", "(stuck &lt;b&gt;): marked")
		has(t, log.String(), `msg="interlock web: break" by=ann from=192.0.2.1:1234 store=main name=coupons/42 id=`+c.PublicID+` fence=`+token(l)+` now=false reason="stuck <b>" owner=`, "outcome=marked\n")
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d lines in the log, want one:\n%s", n, log.String())
		}
	})
}

// The owner of a claim that is broken is told first, unless it is to be at once. A second request
// is answered the same, and another claim is left alone.
func TestBreakIsMarkedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h, log := breaker(t, store)
		deaf := store.Share() // whose holder does not hear that it was marked
		s, err := deaf.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		claim := driver.Claim{Name: "m", ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
		if g, err := s.Acquire(t.Context(), claim); err != nil || !g.Held {
			t.Fatal(g, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait(ctx, t, client(t, store, nil), "m")
		c := claimOf(t, store, "m")

		other := c
		other.Fence++
		answer := body(t, breaks(h, "m", other, ""), http.StatusConflict)
		has(t, answer, "#changed", "nothing was changed", `"line":{"name":"m"`, c.PublicID)
		other = c
		other.PublicID = "0123456789ab"
		body(t, breaks(h, "m", other, `,"now":true`), http.StatusConflict)
		page := body(t, submit(h, url.Values{"name": {"m"}, "id": {other.PublicID}, "fence": {"1"}}), http.StatusConflict)
		has(t, page, "no longer there", `href="line?name=m&amp;store=main"`)
		if now := claimOf(t, store, "m"); now.Broken || now.PublicID != c.PublicID {
			t.Errorf("another claim was meant, and this one is now %+v", now)
		}

		for range 2 {
			has(t, body(t, breaks(h, "m", c, ""), http.StatusOK), `{"state":"marked"}`)
		}
		if now := claimOf(t, store, "m"); !now.Broken || !now.Held {
			t.Errorf("the claim is now %+v, want it marked", now)
		}
		has(t, body(t, get(t, h, "/"), http.StatusOK), `class="broken">broken<`)
		has(t, body(t, get(t, h, "/line?name=m"), http.StatusOK), "who has not let go yet; one waits")
		for range 2 {
			has(t, body(t, breaks(h, "m", c, `,"now":true,"reason":"it hangs"`), http.StatusOK), `{"state":"broken"}`)
		}
		if now := claimOf(t, store, "m"); now.PublicID == c.PublicID {
			t.Errorf("the claim still stands: %+v", now)
		}
		for outcome, times := range map[string]int{"changed": 3, "marked": 2, "broken": 2} {
			if n := strings.Count(log.String(), "outcome="+outcome); n != times {
				t.Errorf("%d lines in the log with the outcome %s, want %d:\n%s", n, outcome, times, log.String())
			}
		}
		for _, secret := range []string{claim.ID} {
			hasNot(t, log.String()+body(t, get(t, h, "/line?name=m"), http.StatusOK)+body(t, get(t, h, "/v1/history?name=m"), http.StatusOK), secret)
		}
	})
}

// Every request for a break is in the log, with who made it and the outcome; also that of somebody
// who may break nothing.
func TestRefusedBreaksAreInTheLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		hold(t, client(t, store, nil), "m")
		for name, c := range map[string]struct {
			may  []string
			want string
		}{
			"nothing": {nil, " outcome=forbidden "},
			"others":  {[]string{"n"}, " store=main name=m id="},
			"all":     {[]string{""}, " outcome=changed "},
		} {
			var log bytes.Buffer
			h := handler(t, store, web.Options{
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Authorize: func(*http.Request) (web.Principal, error) {
					return web.Principal{Name: "eve", Read: []string{""}, Break: c.may}, nil
				},
			})
			other := claimOf(t, store, "m")
			other.Fence++
			if status := breaks(h, "m", other, "").StatusCode; status != http.StatusForbidden && status != http.StatusConflict {
				t.Errorf("who may break %s is answered by %d", name, status)
			}
			submit(h, url.Values{"name": {"m"}, "id": {other.PublicID}, "fence": {"0"}})
			get(t, h, "/break?name=m&fence=0&id="+other.PublicID) // which breaks nothing
			if n := strings.Count(log.String(), `msg="interlock web: break" by=eve from=192.0.2.1:1234 `); n != 2 || strings.Count(log.String(), "\n") != 2 {
				t.Errorf("who may break %s has %d lines in the log, want two:\n%s", name, n, log.String())
			}
			has(t, log.String(), c.want)
		}
	})
}

// A claim that waits is taken out, and nobody else is touched.
func TestBreakOfAWaiter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h, _ := breaker(t, store)
		l := hold(t, client(t, store, nil), "m")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait(ctx, t, client(t, store, nil), "m")
		c := line(t, store, "m").Claims[1]
		has(t, body(t, get(t, h, fmt.Sprintf("/break?name=m&fence=0&id=%s", c.PublicID)), http.StatusOK), "Take this claim out of the line?", "Remove")
		has(t, body(t, breaks(h, "m", c, ""), http.StatusOK), `{"state":"broken"}`)
		if l.Err() != nil {
			t.Errorf("the holder's lease ended by %v", l.Err())
		}
	})
}

// What became of a break at the store is told apart: nothing was done, nobody knows, the store
// cannot, it refuses.
func TestOutcomesOfABreak(t *testing.T) {
	for _, c := range []struct {
		err, look error
		status    int
		word      string
	}{
		{fmt.Errorf("no link: %w", driver.ErrNotSent), nil, http.StatusServiceUnavailable, "not-sent"},
		{errors.New("the answer was lost"), nil, http.StatusGatewayTimeout, "uncertain"},
		{fmt.Errorf("not here: %w", errors.ErrUnsupported), nil, http.StatusNotImplemented, "unsupported"},
		{fmt.Errorf("another program: %w", driver.ErrRefused), nil, http.StatusConflict, "changed"},
		{nil, errors.New("no answer"), http.StatusServiceUnavailable, "not-sent"},
		{nil, fmt.Errorf("that name: %w", driver.ErrName), http.StatusUnprocessableEntity, "refused"},
	} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			bad := &badBreak{Driver: store, err: c.err, look: c.look}
			h, log := breaker(t, bad)
			l := hold(t, client(t, store, nil), "m")
			answer := breaks(h, "m", claimOf(t, store, "m"), "")
			text := body(t, answer, c.status)
			has(t, text, "#"+c.word+`"`)
			has(t, log.String(), "outcome="+c.word)
			if (answer.Header.Get("Retry-After") != "") != (c.word == "not-sent") {
				t.Errorf("%s: Retry-After is %q", c.word, answer.Header.Get("Retry-After"))
			}
			if l.Err() != nil {
				t.Errorf("%s: the lease ended by %v", c.word, l.Err())
			}
		})
	}
}

// A reason or an id cannot control the terminal on which somebody reads the log.
func TestReasonsAreShownInTheLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		log := &bytes.Buffer{}
		h := handler(t, store, web.Options{Authorize: everything, Logger: slog.New(slog.NewJSONHandler(log, nil))})
		hold(t, client(t, store, nil), "m")
		c := claimOf(t, store, "m")
		c.PublicID += "\u009b2J"
		body(t, breaks(h, "m", c, `,"reason":"it\u007f\u009b31m hangs"`), http.StatusConflict)
		text := log.String()
		hasNot(t, text, "\u007f", "\u009b")
		has(t, text, `"reason":"it\\x7f\\u009b31m hangs"`, `\\u009b2J","fence"`, `"outcome":"changed"`)
	})
}

// badBreak is a store that cannot be broken.
type badBreak struct {
	*memlock.Driver
	err, look error
}

func (b *badBreak) Break(context.Context, string, string, uint64, bool) error { return b.err }

func (b *badBreak) Line(ctx context.Context, name string) (driver.Line, error) {
	if b.look != nil {
		return driver.Line{Name: name}, b.look
	}
	return b.Driver.Line(ctx, name)
}

// A break that was begun is finished and logged, also if the client has gone.
func TestBreakIsFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h, log := breaker(t, store)
		hold(t, client(t, store, nil), "m")
		c := claimOf(t, store, "m")
		resume := store.Stall()
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/break", strings.NewReader(fmt.Sprintf(`{"name":"m","id":%q,"fence":"%d","now":true}`, c.PublicID, c.Fence)))
		r.Header.Set("Content-Type", "application/json")
		done := make(chan struct{})
		go func() {
			defer close(done)
			do(h, r)
		}()
		time.Sleep(time.Second)
		cancel()
		time.Sleep(time.Second)
		resume()
		<-done
		has(t, log.String(), "outcome=broken")
		if l := line(t, store, "m"); len(l.Claims) != 0 && l.Claims[0].PublicID == c.PublicID {
			t.Errorf("the claim still stands: %+v", l)
		}
	})
}

// History says what happened, and how long there was waited.
func TestHistory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{})
		a, b := client(t, store, nil), client(t, store, nil)
		v := follow(t, h, "/v1/watch?name=m")
		list := follow(t, h, "/v1/watch") // which tells of the same, and must not tell it twice
		time.Sleep(2 * time.Second)
		l := hold(t, a, "m")
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		wait(ctx, t, b, "m")
		time.Sleep(3 * time.Second)
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		v.leave()
		time.Sleep(2 * time.Second)
		cancel()
		time.Sleep(2 * time.Second)
		list.leave()

		var y struct {
			Waited int `json:"waited_ms"`
			Events []struct {
				What   string
				Fence  string
				Waited *int `json:"waited_ms"`
			}
		}
		text := body(t, get(t, h, "/v1/history?name=m"), http.StatusOK)
		if err := json.Unmarshal([]byte(text), &y); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, e := range y.Events {
			words = append(words, e.What)
		}
		if got := strings.Join(words, " "); got != "granted waits gone granted gone" || y.Waited != 3000 {
			t.Errorf("history %q with %d ms of waiting, want granted waits gone granted gone with 3000:\n%s", got, y.Waited, text)
		}
		has(t, body(t, get(t, h, "/line?name=m"), http.StatusOK), "got it after 3 s of waiting", "has it no more", "The last 5 events, 2 of them grants; 3 s of waiting have ended")
		has(t, body(t, get(t, h, "/contention"), http.StatusOK), ">3 s<", `data-key="&#34;m&#34;"`)
		has(t, body(t, get(t, h, "/v1/lines?sort=waiting"), http.StatusOK), `"waited_ms":3000`)
	})
}
