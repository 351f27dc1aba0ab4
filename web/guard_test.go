package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/webtest"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// targets are all paths, with what their request needs to be served.
var targets = []string{
	"GET /", "GET /line?name=m", "GET /contention", "GET /stores", "GET /break?name=m&id=x&fence=1", "POST /break", "GET /live?page=list",
	"GET /v1/stores", "GET /v1/lines", "GET /v1/line?name=m", "GET /v1/history?name=m", "GET /v1/watch?name=m", "GET /v1/watch", "POST /v1/break",
	"GET /v1/openapi.json",
}

// request makes a request of a word of targets.
func request(target string) *http.Request {
	method, path, _ := strings.Cut(target, " ")
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost:7070"
	return r
}

// everything is a principal who may do everything.
func everything(*http.Request) (web.Principal, error) {
	return web.Principal{Name: "root", Read: []string{""}, Break: []string{""}}, nil
}

// A page whose name was bound to this machine sends that name as Host, and looks to the browser
// like the server's own.
func TestForeignHostIsRefusedEverywhere(t *testing.T) {
	h := handler(t, memlock.New(), web.Options{Authorize: everything, Hosts: []string{"locks.example.org", "10.0.0.5:7070"}})
	ended, cancel := context.WithCancel(t.Context()) // so that what streams would end
	cancel()
	for _, target := range targets {
		for _, host := range []string{
			"evil.example", "evil.example:7070", "", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.5", "10.0.0.5:80", "10.0.0.6:7070",
			"locks.example.org.evil.example", "127.0.0.1@evil.example", "[::2]:7070", "[::1", "::1:7070:1", "localhost:7070:1", "128.0.0.1", "0.0.0.0:7070", "[::]",
		} {
			r := request(target).WithContext(ended)
			r.Host = host
			has(t, body(t, do(h, r), http.StatusMisdirectedRequest), "not known by that host")
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:7070", "127.0.0.1", "127.0.0.1:7070", "127.8.8.8", "[::1]", "[::1]:7070", "[::ffff:127.0.0.1]:1", "locks.example.org", "Locks.Example.org.:443", "10.0.0.5:7070"} {
		r := request("GET /v1/lines")
		r.Host = host
		body(t, do(h, r), http.StatusOK)
	}
}

// A request that another site's page has a browser make changes nothing.
func TestRequestOfAnotherSiteIsRefused(t *testing.T) {
	h := handler(t, memlock.New(), web.Options{Authorize: everything})
	for _, target := range []string{"POST /break", "POST /v1/break"} {
		for _, header := range []http.Header{
			{"Sec-Fetch-Site": {"cross-site"}},
			{"Sec-Fetch-Site": {"same-site"}},
			{"Origin": {"https://evil.example"}},
			{"Origin": {"null"}},
			{"Origin": {"http://localhost:7071"}},
			{"Origin": {"http://localhost:7070"}, "Sec-Fetch-Site": {"cross-site"}},
		} {
			r := request(target)
			r.Header = header
			has(t, body(t, do(h, r), http.StatusForbidden), "comes from another page")
		}
		for _, header := range []http.Header{{"Sec-Fetch-Site": {"same-origin"}}, {"Sec-Fetch-Site": {"none"}}, {"Origin": {"http://localhost:7070"}}, {}} {
			r := request(target)
			r.Header = header
			body(t, do(h, r), http.StatusUnsupportedMediaType)
		}
	}
}

var defences = webtest.Defences("no-referrer")

// Whatever is answered cannot be framed, guessed at, kept, or made to run anything.
func TestEveryAnswerIsProtected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := handler(t, memlock.New(), web.Options{Authorize: everything})
		for _, target := range append([]string{"GET /nothing", "DELETE /", "GET /v1/line", "GET /static/page.css"}, targets...) {
			v := follow(t, h, "/", func(r *http.Request) { *r = *request(target).WithContext(r.Context()) })
			v.leave()
			<-v.ended
			for name, want := range defences {
				if got := v.header.Get(name); !strings.Contains(got, want) {
					t.Errorf("%s: %s is %q, want %q", target, name, got, want)
				}
			}
			has(t, v.header.Get("Content-Security-Policy"), "frame-ancestors 'none'", "base-uri 'self'", "form-action 'self'", "script-src 'self'", "style-src 'self'")
			hasNot(t, v.header.Get("Content-Security-Policy"), "unsafe", "*", "data:", "http")
		}
	})
}

// A body that is announced and never comes keeps nobody waiting: net/http must find the one that it
// made when it looks how much is left.
func TestTheBodyIsLeftToTheServer(t *testing.T) {
	h := handler(t, memlock.New(), web.Options{Authorize: everything})
	for _, target := range []string{"POST /v1/break", "POST /break", "GET /v1/lines", "POST /nothing"} {
		r := request(target)
		r.Body = io.NopCloser(strings.NewReader("{}"))
		before := r.Body
		do(h, r)
		if r.Body != before {
			t.Errorf("%s: the body is another one when it was answered", target)
		}
	}
}

// What a page loads comes from this server, by paths that change with what is there.
func TestPagesLoadWhatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := handler(t, memlock.New(), web.Options{Prefix: "/locks"})
		page := body(t, get(t, h, "/locks/"), http.StatusOK)
		has(t, page, `<base href="/locks/">`)
		hasNot(t, page, "style=", "onclick", "<style", "http://", "https://", "javascript:")
		n := 0
		for word := range strings.SplitSeq(page, `"`) {
			if !strings.HasPrefix(word, "static/") {
				continue
			}
			n++
			r := get(t, h, "/locks/"+word)
			has(t, r.Header.Get("Cache-Control"), "immutable")
			if body(t, r, http.StatusOK) == "" || r.Header.Get("Content-Type") == "" {
				t.Errorf("%s is empty or of no type", word)
			}
		}
		if n != 3 {
			t.Errorf("the page loads %d files, want its icon, styles and script", n)
		}
	})
}
