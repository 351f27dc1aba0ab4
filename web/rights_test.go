package web_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// called makes the request of a word of targets for a claim of a name, and returns its status.
func called(t *testing.T, h http.Handler, target, who string, claim driver.Holder) (status int, text string) {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	path = strings.NewReplacer("name=m", "name=a/m", "id=x", "id="+claim.PublicID, "fence=1", fmt.Sprint("fence=", claim.Fence)).Replace(path)
	v := follow(t, h, "/", func(r *http.Request) {
		*r = *request(method + " " + path).WithContext(r.Context())
		r.Header.Set("Authorization", who)
		switch {
		case target == "POST /break":
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Body = io.NopCloser(strings.NewReader(fmt.Sprintf("name=a%%2Fm&id=%s&fence=%d&now=1", claim.PublicID, claim.Fence)))
		case method == "POST":
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			r.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"name":"a/m","id":%q,"fence":"%d","now":true}`, claim.PublicID, claim.Fence)))
		}
	})
	v.leave()
	<-v.ended
	if v.status == 0 {
		v.status = http.StatusOK
	}
	return v.status, v.got.String()
}

// loaded are the targets of what pages load.
func loaded(h *web.Handler) (all []string) {
	for _, route := range h.Routes() {
		if strings.Contains(route, " /static/") {
			all = append(all, route)
		}
	}
	return all
}

// Every route there is stands among those that the tests of rights, hosts and headers try.
func TestEveryRouteIsTried(t *testing.T) {
	h := handler(t, memlock.New(), web.Options{})
	tried := map[string]bool{}
	for _, target := range append(loaded(h), targets...) {
		route, _, _ := strings.Cut(target, "?")
		tried[route] = true
	}
	for _, route := range h.Routes() {
		if !tried[route] {
			t.Errorf("%s is not tried", route)
		}
		delete(tried, route)
	}
	if len(tried) > 0 {
		t.Errorf("%v are tried, and there is no such route", tried)
	}
}

// Every route, for everybody.
func TestRoutesByRights(t *testing.T) {
	principals := map[string]web.Principal{
		"nothing":       {Name: "nothing"},
		"reads":         {Name: "reads", Read: []string{""}},
		"reads a/":      {Name: "reads a/", Read: []string{"x", "a/"}},
		"reads b/":      {Name: "reads b/", Read: []string{"b/", "a/mm"}},
		"breaks":        {Name: "breaks", Read: []string{""}, Break: []string{""}},
		"breaks b/":     {Name: "breaks b/", Read: []string{""}, Break: []string{"b/", "a/mm"}},
		"breaks only":   {Name: "breaks only", Break: []string{"a/m"}},
		"reads nothing": {Name: "reads nothing", Read: []string{}},
	}
	authorize := func(r *http.Request) (web.Principal, error) {
		switch who := r.Header.Get("Authorization"); who {
		case "expired":
			return web.Principal{}, fmt.Errorf("token of yesterday: %w", web.ErrUnauthenticated)
		case "locked out":
			return web.Principal{Name: who}, web.ErrForbidden
		case "unknown":
			return web.Principal{Read: []string{""}, Break: []string{""}}, errors.New("the directory at ldap://secret does not answer")
		default:
			return principals[who], nil
		}
	}
	const ok, see, no, gate, failed = http.StatusOK, http.StatusSeeOther, http.StatusForbidden, http.StatusUnauthorized, http.StatusInternalServerError
	// The columns: read-only routes that show a name, those that show what may be read of all, the
	// page that asks, the two that break.
	for who, want := range map[string][4]int{
		"nothing":       {no, no, no, no},
		"reads nothing": {no, no, no, no},
		"reads":         {ok, ok, no, no},
		"reads a/":      {ok, ok, no, no},
		"reads b/":      {no, ok, no, no},
		"breaks":        {ok, ok, ok, ok},
		"breaks b/":     {ok, ok, no, no},
		"breaks only":   {no, no, no, ok},
		"expired":       {gate, gate, gate, gate},
		"locked out":    {no, no, no, no},
		"unknown":       {failed, failed, failed, failed},
	} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := memlock.New()
				h := handler(t, store, web.Options{Authorize: authorize})
				c := client(t, store, nil)
				for _, target := range append(loaded(h), targets...) {
					l := hold(t, c, "a/m")
					claim := claimOf(t, store, "a/m")
					status, text := called(t, h, target, who, claim)
					wanted := want[1]
					switch {
					case target == "GET /v1/openapi.json", strings.Contains(target, "/static/"):
						wanted = ok
					case target == "POST /break" && want[3] == ok:
						wanted = see
					case strings.HasPrefix(target, "POST"):
						wanted = want[3]
					case strings.Contains(target, "/break?"):
						wanted = want[2]
					case strings.Contains(target, "name=m"):
						wanted = want[0]
					}
					if status != wanted {
						t.Errorf("%s: status %d, want %d:\n%s", target, status, wanted, text)
					}
					hasNot(t, text, "ldap", "yesterday")
					if wanted >= 300 && wanted != see || who == "reads b/" {
						hasNot(t, text, "a/m<", `"a/m"`, claim.Owner.Host)
					}
					broken := l.Err() != nil || len(line(t, store, "a/m").Claims) == 0
					if strings.HasPrefix(target, "POST") != broken && want[3] == ok || broken && want[3] != ok {
						t.Errorf("%s: the claim is broken: %t", target, broken)
					}
					_ = l.Release()
				}
			})
		})
	}
}

// Without anybody who tells who asks, everybody may read, and nobody may break.
func TestNobodyBreaksWithoutAuthorize(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{})
		hold(t, client(t, store, nil), "a/m")
		for _, target := range targets {
			status, text := called(t, h, target, "", claimOf(t, store, "a/m"))
			if want := map[bool]int{false: http.StatusOK, true: http.StatusForbidden}[strings.Contains(target, "/break")]; status != want {
				t.Errorf("%s: status %d, want %d:\n%s", target, status, want, text)
			}
		}
		hasNot(t, body(t, get(t, h, "/line?name=a/m"), http.StatusOK), "Break…")
	})
}

// line returns how a name stands.
func line(t *testing.T, d *memlock.Driver, name string) driver.Line {
	t.Helper()
	l, err := d.Share().Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// claimOf returns the claim of a name that stands first.
func claimOf(t *testing.T, d *memlock.Driver, name string) driver.Holder {
	t.Helper()
	l := line(t, d, name)
	if len(l.Claims) == 0 {
		t.Fatalf("nobody holds %q", name)
	}
	return l.Claims[0]
}

// What a store says of its failures may have names in it, which are for those who may read them.
func TestFailuresNameNobodyToOthers(t *testing.T) {
	for who, want := range map[string]bool{"": true, "a/": false} {
		bubble(t, func(t *testing.T) {
			bad := &slowStore{Driver: memlock.New(), err: errors.New("what stands at b/secret is damaged")}
			h := handler(t, bad, web.Options{Authorize: func(*http.Request) (web.Principal, error) { return web.Principal{Read: []string{who}}, nil }})
			hold(t, client(t, bad.Driver, nil), "a/m")
			partial := body(t, get(t, h, "/"), http.StatusOK) + body(t, get(t, h, "/contention"), http.StatusOK) + body(t, get(t, h, "/v1/lines"), http.StatusOK)
			has(t, partial, "not complete", `"partial":"`)
			bad.Driver.Fail(bad.err)
			time.Sleep(time.Minute)
			get(t, h, "/v1/lines") // which reads it again
			failed := body(t, get(t, h, "/"), http.StatusOK) + body(t, get(t, h, "/contention"), http.StatusOK) + body(t, get(t, h, "/v1/lines"), http.StatusOK) +
				body(t, get(t, h, "/stores"), http.StatusOK) + body(t, get(t, h, "/v1/stores"), http.StatusOK)
			has(t, failed, "could not be read", "does not answer", `"health":"fails"`)
			for _, text := range []string{partial, failed} {
				if strings.Contains(text, "b/secret") != want {
					t.Errorf("to who may read %q the name is told: %t\n%s", who, !want, text)
				}
			}
		})
	}
}
