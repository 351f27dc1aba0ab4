package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// Whatever is asked wrongly is answered by a problem that says what would be right, and changes
// nothing.
func TestWrongRequests(t *testing.T) {
	long := strings.Repeat("x", 1025)
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h, _ := breaker(t, store)
		l := hold(t, client(t, store, nil), "m")
		c := claimOf(t, store, "m")
		good := `{"name":"m","id":"` + c.PublicID + `","fence":"` + token(l) + `"}`
		for _, x := range []struct {
			method, target, mediaType, body string
			status                          int
			word                            string
		}{
			{"GET", "/v1/nothing", "", "", 404, "not-found"},
			{"GET", "/v1", "", "", 404, "not-found"},
			{"GET", "/v1/", "", "", 404, "not-found"},
			{"GET", "/v1//lines", "", "", 404, "not-found"},
			{"GET", "/v1/x/../lines", "", "", 404, "not-found"},
			{"GET", "/v1/%6cines", "", "", 404, "not-found"},
			{"GET", "/v1%2Flines", "", "", 404, "not-found"},
			{"GET", "/v1/lines/", "", "", 404, "not-found"},
			{"GET", "/static/", "", "", 404, "not-found"},
			{"GET", "/static/page.css", "", "", 404, "not-found"},
			{"GET", "/static/../web.go", "", "", 404, "not-found"},
			{"GET", "/templates/list.html", "", "", 404, "not-found"},
			{"POST", "/v1/lines", "", "", 405, "method"},
			{"DELETE", "/v1/break", "", "", 405, "method"},
			{"GET", "/v1/break", "", "", 405, "method"},
			{"OPTIONS", "/v1/lines", "", "", 405, "method"},
			{"TRACE", "/", "", "", 405, "method"},
			{"BREW\u00e9", "/", "", "", 405, "method"},
			{"PUT", "/break", "", "", 405, "method"},

			{"GET", "/v1/line", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=" + long, "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=a%00b", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=a%0Ab", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=%C2%85", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=%FF", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=%zz", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=a&name=b", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=a;b", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=a&Name=b", "", "", 400, "bad-request"},
			{"GET", "/v1/line?name=m&store=", "", "", 404, "no-store"},
			{"GET", "/v1/line?name=m&store=other", "", "", 404, "no-store"},
			{"GET", "/line?name=m&store=../main", "", "", 404, "no-store"},
			{"GET", "/line?name=%FF", "", "", 400, "bad-request"},
			{"GET", "/line?name=m&all=2", "", "", 400, "bad-request"},
			{"GET", "/?prefix=%00", "", "", 400, "bad-request"},
			{"GET", "/?after=%FF", "", "", 400, "bad-request"},
			{"GET", "/v1/lines?prefix=" + long, "", "", 400, "bad-request"},
			{"GET", "/v1/lines?limit=0", "", "", 400, "bad-request"},
			{"GET", "/v1/lines?limit=1001", "", "", 400, "bad-request"},
			{"GET", "/v1/lines?limit=1e3", "", "", 400, "bad-request"},
			{"GET", "/v1/lines?limit=99999999999999999999", "", "", 400, "bad-request"},
			{"GET", "/v1/lines?sort=age", "", "", 400, "bad-request"},
			{"GET", "/v1/lines?sort=waiting&after=a", "", "", 400, "bad-request"},
			{"GET", "/v1/lines?name=m", "", "", 400, "bad-request"},
			{"GET", "/v1/stores?store=main", "", "", 400, "bad-request"},
			{"GET", "/v1/history", "", "", 400, "bad-request"},
			{"GET", "/v1/watch?name=%FF", "", "", 400, "bad-request"},
			{"GET", "/v1/watch?name=m&prefix=m", "", "", 400, "bad-request"},
			{"GET", "/live?page=break", "", "", 400, "bad-request"},
			{"GET", "/live?page=line", "", "", 400, "bad-request"},
			{"GET", "/break?name=m&id=&fence=1", "", "", 400, "bad-request"},
			{"GET", "/break?name=m&id=x&fence=-1", "", "", 400, "bad-request"},
			{"GET", "/break?name=m&id=x&fence=1", "", "", 409, "changed"},

			{"POST", "/v1/break", "", good, 415, "media-type"},
			{"POST", "/v1/break", "text/plain", good, 415, "media-type"},
			{"POST", "/v1/break", "application/x-www-form-urlencoded", good, 415, "media-type"},
			{"POST", "/v1/break", "application/json; charset=utf-16", good, 415, "media-type"},
			{"POST", "/v1/break", "application/json;;", good, 415, "media-type"},
			{"POST", "/v1/break?name=m", "application/json", good, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", "", 400, "bad-request"},
			{"POST", "/v1/break", "application/json", "null", 400, "bad-request"},
			{"POST", "/v1/break", "application/json", "[]", 400, "bad-request"},
			{"POST", "/v1/break", "application/json", good[:len(good)-1], 400, "bad-request"},
			{"POST", "/v1/break", "application/json", `{"name":"m`, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", `{"name":"m",`, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", `{"name" "m"}`, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", `{name:"m"}`, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", good + good, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", good + "x", 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"force":true,`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"`+token(l)+`"`, token(l), 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, token(l), "", 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, token(l), "+"+token(l), 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, token(l), "18446744073709551616", 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", `{"name":"m","id":"` + c.PublicID + `"}`, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"now":"yes",`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"reason":"`+long+`",`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"m"`, "\"m\xff\"", 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"m"`, `"m\u0000"`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"m"`, `"m\ud800"`, 1), 409, "changed"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"m"`, `"../m"`, 1), 409, "changed"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"store":"other",`, 1), 404, "no-store"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"name":"n",`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"fence":"0",`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"Name":"n",`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"name"`, `"NAME"`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, "{", `{"\u006eame":"n",`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"m"`, `null`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", strings.Replace(good, `"m"`, `["m"]`, 1), 400, "bad-request"},
			{"POST", "/v1/break", "application/json", "\ufeff" + good, 400, "bad-request"},
			{"POST", "/v1/break", "application/json", good + strings.Repeat(" ", 1<<14), 413, "too-large"},
			{"POST", "/v1/break", "application/json", strings.Repeat("[", 1<<13), 400, "bad-request"},
			{"POST", "/break", "application/json", good, 415, "media-type"},
			{"POST", "/break", "application/x-www-form-urlencoded", "name=m&id=x&fence=1;2", 400, "bad-request"},
			{"POST", "/break", "application/x-www-form-urlencoded", "name=m&id=x&fence=1&name=n", 400, "bad-request"},
			{"POST", "/break", "application/x-www-form-urlencoded", "name=m&id=x&fence=1&force=1", 400, "bad-request"},
			{"POST", "/break", "application/x-www-form-urlencoded", "name=m&id=x&fence=1&now=on", 400, "bad-request"},
			{"POST", "/break", "multipart/form-data; boundary=x", "--x--", 415, "media-type"},
			{"POST", "/break", "application/x-www-form-urlencoded", "name=m&id=" + c.PublicID + "&fence=" + token(l) + "&NAME=n", 400, "bad-request"},
			{"POST", "/break", "application/x-www-form-urlencoded", "name=m&id=" + c.PublicID + "&fence=%zz", 400, "bad-request"},
			{"POST", "/break", "application/x-www-form-urlencoded", "name=m&id=" + c.PublicID + "&fence=" + token(l) + "&reason=%ff", 400, "bad-request"},
			{"POST", "/break?name=m", "application/x-www-form-urlencoded", "id=" + c.PublicID + "&fence=" + token(l), 400, "bad-request"},
		} {
			r := &http.Request{Method: x.method, URL: mustParse(t, x.target), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Host: "localhost", Body: io.NopCloser(strings.NewReader(x.body))}
			r = r.WithContext(t.Context())
			if x.mediaType != "" {
				r.Header.Set("Content-Type", x.mediaType)
			}
			answer := do(h, r)
			text := body(t, answer, x.status)
			if page := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html"); page {
				has(t, text, "<h1>")
				continue
			}
			var p struct {
				Type, Title, Detail string
				Status              int
			}
			if err := json.Unmarshal([]byte(text), &p); err != nil || answer.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %.100s: %q is no problem: %v", x.method, x.target, text, err)
			}
			if !strings.HasSuffix(p.Type, "/docs/web.md#"+x.word) || p.Status != x.status || p.Title == "" || p.Detail == "" {
				t.Errorf("%s %.100s %.100q: the problem is %+v, want %s and all said", x.method, x.target, x.body, p, x.word)
			}
			if strings.Contains(p.Detail, "EOF") || strings.Contains(p.Detail, "Go ") {
				t.Errorf("%.100q is answered in words of Go: %s", x.body, p.Detail)
			}
			if x.status == 405 && answer.Header.Get("Allow") == "" {
				t.Errorf("%s %s: it is not said which methods are allowed", x.method, x.target)
			}
			if len(text) > 4096 {
				t.Errorf("%s %.100s: an answer of %d bytes", x.method, x.target, len(text))
			}
		}
		var squeezed bytes.Buffer
		z := gzip.NewWriter(&squeezed)
		_, _ = z.Write([]byte(good))
		_ = z.Close()
		r := httptest.NewRequest(http.MethodPost, "/v1/break", &squeezed)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Encoding", "gzip")
		has(t, body(t, do(h, r), http.StatusUnsupportedMediaType), "want it as it is")
		if now := claimOf(t, store, "m"); now.Broken || now.PublicID != c.PublicID || l.Err() != nil {
			t.Errorf("the claim is now %+v and its lease %v: want them left alone", now, l.Err())
		}
	})
}

// Each path answers to its methods, and to any other one by those that it has; HEAD goes with GET.
func TestMethods(t *testing.T) {
	h := handler(t, memlock.New(), web.Options{Authorize: everything})
	ended, cancel := context.WithCancel(t.Context()) // so that streams end
	cancel()
	paths := map[string][]string{}
	for _, route := range h.Routes() {
		method, path, _ := strings.Cut(route, " ")
		paths[path] = append(paths[path], method)
		if method == http.MethodGet {
			paths[path] = append(paths[path], http.MethodHead)
		}
	}
	for path, has := range paths {
		slices.Sort(has)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY", "PROPFIND", "get", "GET\u00a0"} {
			r := (&http.Request{Method: method, URL: &url.URL{Path: path}, Host: "localhost", Header: http.Header{}, Body: http.NoBody}).WithContext(ended)
			answer := do(h, r)
			if may := slices.Contains(has, method); may == (answer.StatusCode == http.StatusMethodNotAllowed) || answer.StatusCode == http.StatusNotFound {
				t.Errorf("%q of %s is answered by %d, and it has %q", method, path, answer.StatusCode, has)
			} else if got := answer.Header.Get("Allow"); !may && got != strings.Join(has, ", ") {
				t.Errorf("%q of %s: %q are allowed, want %q", method, path, got, has)
			}
		}
	}
}

func mustParse(t *testing.T, target string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{Path: target}
		if path, query, ok := strings.Cut(target, "?"); ok {
			u = &url.URL{Path: path, RawQuery: query}
		}
	}
	return u
}

// Any name that a lock can have is found by its address, and shown so that it changes nothing of
// the page.
func TestStrangeNames(t *testing.T) {
	names := []string{
		"a/b", "/", "//", "..", "../..", "a/../b", ".", "%2e%2e", "%00", "a b", "a+b", "a&b=c", "a#b", "a?b", "日本", "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>",
		"{{.}}", "javascript:alert(1)", "\u202egnp.exe", "a\u200bb", "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301", `\`, "a;b", "\u2028", strings.Repeat("x", 1024),
	}
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h, _ := breaker(t, store)
		c := client(t, store, nil)
		for _, name := range names {
			hold(t, c, name)
		}
		list := body(t, get(t, h, "/"), http.StatusOK)
		hasNot(t, list, "<script>alert", "<img", "\u202e", "\u200b", "\u2028", `href="javascript`)
		for _, name := range names {
			q := "?" + url.Values{"name": {name}}.Encode()
			var l struct{ Name string }
			if err := json.Unmarshal([]byte(body(t, get(t, h, "/v1/line"+q), http.StatusOK)), &l); err != nil || l.Name != name {
				t.Errorf("%q: the line of %q was shown, %v", name, l.Name, err)
			}
			page := body(t, get(t, h, "/line"+q), http.StatusOK)
			has(t, page, "Held by")
			hasNot(t, page, "<script>alert", "<img", "\u202e", "\u200b", `href="javascript`)
			claim := claimOf(t, store, name)
			has(t, body(t, breaks(h, "x", claim, ""), http.StatusConflict), "#changed")
			body(t, submit(h, url.Values{"name": {name}, "id": {claim.PublicID}, "fence": {tokenOf(claim)}, "now": {"1"}}), http.StatusSeeOther)
			if now := line(t, store, name).Claims; slices.ContainsFunc(now, func(h driver.Holder) bool { return h.PublicID == claim.PublicID }) {
				t.Errorf("%q: the claim was not broken", name)
			}
		}
	})
}

// A handler below a prefix works whether or not who is in front takes that away.
func TestPrefix(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		h := handler(t, store, web.Options{Prefix: "/ops/locks", Authorize: everything})
		hold(t, client(t, store, nil), "m")
		for _, mounted := range []http.Handler{h, http.StripPrefix("/ops/locks", h)} {
			page := body(t, get(t, mounted, "/ops/locks/?prefix=m"), http.StatusOK)
			has(t, page, `<base href="/ops/locks/">`, `href="line?name=m&amp;store=main"`)
			hasNot(t, page, `href="/`+"?", `href="/line`)
			body(t, get(t, mounted, "/ops/locks/v1/lines"), http.StatusOK)
			body(t, get(t, mounted, "/ops/locks"), http.StatusMovedPermanently)
			body(t, get(t, mounted, "/ops/locks/nothing"), http.StatusNotFound)
		}
		body(t, get(t, h, "/ops/locksmith"), http.StatusNotFound)
		c := claimOf(t, store, "m")
		r := submit(h, url.Values{"name": {"m"}, "id": {c.PublicID}, "fence": {tokenOf(c)}})
		if at := r.Header.Get("Location"); at != "/ops/locks/line?name=m&store=main" {
			t.Errorf("after the form it goes on at %q", at)
		}
	})
	for _, prefix := range []string{"locks", "/locks/", "/", "/a//b", "/a/../b", "/a%20b", "/a b", "/a?b"} {
		if _, err := web.New([]web.Store{{Name: "main", Driver: memlock.New()}}, &web.Options{Prefix: prefix}); err == nil || !strings.Contains(err.Error(), "want a path as /locks") {
			t.Errorf("prefix %q: %v, want an error that says what is right", prefix, err)
		}
	}
}

// What cannot be shown is refused at once.
func TestWrongOptions(t *testing.T) {
	d := memlock.New()
	for want, f := range map[string]func() (*web.Handler, error){
		"no store":        func() (*web.Handler, error) { return web.New(nil, nil) },
		"want 1 to 64 of": func() (*web.Handler, error) { return web.New([]web.Store{{Name: "a b", Driver: d}}, nil) },
		"has no driver":   func() (*web.Handler, error) { return web.New([]web.Store{{Name: "a"}}, nil) },
		"two stores are called": func() (*web.Handler, error) {
			return web.New([]web.Store{{Name: "a", Driver: d}, {Name: "a", Driver: d}}, nil)
		},
		"how many events are kept": func() (*web.Handler, error) {
			return web.New([]web.Store{{Name: "a", Driver: d}}, &web.Options{History: -1})
		},
		"how many there may be": func() (*web.Handler, error) {
			return web.New([]web.Store{{Name: "a", Driver: d}}, &web.Options{Streams: -1})
		},
		"want a host": func() (*web.Handler, error) {
			return web.New([]web.Store{{Name: "a", Driver: d}}, &web.Options{Hosts: []string{"https://a"}})
		},
	} {
		if h, err := f(); err == nil || h != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
	}
}
