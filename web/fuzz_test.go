package web_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/webtest"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// statuses are those that a request of whatever shape may have that names no claim which stands
// somewhere. 5xx is none of them.
var statuses = []int{200, 301, 400, 403, 404, 405, 409, 413, 415, 421}

// fuzzed are handlers of a store in which ann holds "m", bob waits for it, and somebody has a name
// that not everybody may see.
type fuzzed struct {
	all    *web.Handler // for somebody who may do everything
	some   *web.Handler // for somebody who may see what begins with a/, and do nothing
	store  *memlock.Driver
	claims []driver.Holder // of m
	hidden []string        // which somebody is not told who may see a/ only

	webtest.Judge // whose secrets are those of the claims
}

func newFuzzed(t testing.TB) *fuzzed {
	t.Helper()
	f := &fuzzed{store: memlock.New(), hidden: []string{"hidden-name-7f3a", "hidden-owner-7f3a", "hidden-note-7f3a"}}
	f.all = f.handler(t, web.Principal{Name: "root", Read: []string{""}, Break: []string{""}})
	f.some = f.handler(t, web.Principal{Name: "some", Read: []string{"a/"}})
	f.claim(t, driver.Owner{Name: "ann<script>\u202e"}, driver.Claim{Name: "m", Note: "\"'><img src=x>"})
	f.claim(t, driver.Owner{Name: "bob"}, driver.Claim{Name: "m"})
	f.claim(t, driver.Owner{Name: "hidden-owner-7f3a", Host: "hidden-owner-7f3a"}, driver.Claim{Name: "b/hidden-name-7f3a", Note: "hidden-note-7f3a"})
	for _, name := range []string{"m", "b/hidden-name-7f3a"} {
		for _, h := range f.line(t, name) {
			f.hidden = append(f.hidden, h.PublicID)
		}
	}
	f.claims = f.line(t, "m")
	f.Judge = webtest.Judge{Statuses: statuses, Secrets: f.Secrets, Kinds: webtest.Kinds(t, "../docs/web.md"), Base: "/p/", Defences: defences}
	return f
}

func (f *fuzzed) handler(t testing.TB, who web.Principal) *web.Handler {
	t.Helper()
	h, err := web.New([]web.Store{{Name: "main", Driver: f.store.Share()}}, &web.Options{
		Authorize: func(*http.Request) (web.Principal, error) { return who, nil }, Prefix: "/p", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// claim has somebody stand in a line for a day.
func (f *fuzzed) claim(t testing.TB, who driver.Owner, c driver.Claim) driver.Session {
	t.Helper()
	id := driver.NewID()
	s, err := f.store.Share().Open(t.Context(), driver.Spec{ID: id, TTL: 24 * 3600e9, Owner: who})
	if err != nil {
		t.Fatal(err)
	}
	c.ID, c.Kind, c.Weight, c.Limit, c.Queue = driver.NewID(), driver.Mutex, driver.All, driver.All, true
	if _, err := s.Acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	f.Secrets = append(f.Secrets, id, c.ID)
	return s
}

func (f *fuzzed) line(t testing.TB, name string) []driver.Holder {
	t.Helper()
	l, err := f.store.Line(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Claims
}

// unchanged fails unless the line of m is what it was.
func (f *fuzzed) unchanged(t testing.TB) {
	t.Helper()
	if now := f.line(t, "m"); !slices.Equal(now, f.claims) {
		t.Fatalf("the line was changed from %+v to %+v", f.claims, now)
	}
}

// ask makes a request of both handlers, and looks at what is answered: that it is whole, of the
// type that it says and as that is described, defended, with no secret in it, and that nothing of
// what was sent runs in it.
func (f *fuzzed) ask(t testing.TB, r *http.Request, sent string) *http.Response {
	t.Helper()
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, _ := f.judged(t, f.all, r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, less := f.judged(t, f.some, r)
	for _, word := range f.hidden {
		if bytes.Contains(less, []byte(word)) && !strings.Contains(sent, word) {
			t.Errorf("somebody who may see a/ is told %q:\n%s", word, less)
		}
	}
	return answer
}

func (f *fuzzed) judged(t testing.TB, h http.Handler, r *http.Request) (*http.Response, []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := w.Result()
	text, _ := io.ReadAll(answer.Body)
	f.Answer(t, r.Method, answer, text)
	if to := answer.Header.Get("Location"); to != "" && to != "/p/" {
		t.Errorf("it leads to %q", to)
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/p")
	if answer.StatusCode == http.StatusOK && answer.Header.Get("Content-Type") == "application/json" && path != "/v1/openapi.json" {
		for _, fault := range web.Undescribed(path, answer.StatusCode, text) {
			t.Errorf("%s in %s", fault, text)
		}
	}
	return answer, text
}

// A shot is a request of whatever shape.
type shot struct{ method, target, host, mediaType, accept, site, body string }

// shots are where fuzzing begins: every route, with a prefix and without.
func shots(h *web.Handler) (all []shot) {
	const claim, form = `{"name":"m","id":"x","fence":"1"}`, "name=m&id=x&fence=1"
	for _, route := range h.Routes() {
		method, path, _ := strings.Cut(route, " ")
		all = append(all, shot{method, path, "localhost", "", "text/html", "none", ""}, shot{"PURGE", path, "localhost", "", "", "", ""})
	}
	for _, target := range targets {
		method, path, _ := strings.Cut(target, " ")
		all = append(all,
			shot{method, path, "localhost", "application/json", "*/*", "same-origin", claim},
			shot{method, "/p" + path, "localhost:1", "application/x-www-form-urlencoded", "text/html,*/*", "same-origin", form},
			shot{method, path, "localhost", "application/json", "", "cross-site", strings.Replace(claim, "{", `{"name":"n",`, 1)},
		)
	}
	return append(all,
		shot{"GET", "/p/line?name=%3Cscript%3Ealert(1)%3C/script%3E&all=1", "localhost", "", "", "", ""},
		shot{"GET", "/?prefix=%22%3E%3Cimg%20src=x%3E&after=a", "[::1]:1", "", "text/html", "", ""},
		shot{"GET", "/v1/lines?limit=1&sort=waiting&prefix=b/", "127.0.0.1", "", "", "", ""},
		shot{"GET", "/v1/watch?name=b/hidden", "127.0.0.1", "", "", "", ""},
		shot{"GET", "/live?page=line&name=m&all=1", "127.0.0.1", "", "", "", ""},
		shot{"GET", "/live?page=contention", "127.0.0.1", "", "", "", ""},
		shot{"GET", "/p//../p//line", "evil.example", "", "", "", ""},
		shot{"GET", "/p", "localhost", "", "", "", ""},
		shot{"GET", "/v1/line?name=%00%ff&name=m;n", "localhost", "", "", "", ""},
		shot{"GET", "/%2e%2e/%2fv1/lines", "localhost", "", "", "", ""},
	)
}

// request makes the request of a shot, or returns nil if none can come in so. The answer of a
// stream ends with its beginning.
func (s shot) request(ctx context.Context) *http.Request {
	u, err := url.Parse(s.target)
	if err != nil || u.Host != "" || u.Opaque != "" {
		return nil
	}
	if path := strings.TrimPrefix(u.EscapedPath(), "/p"); path == "/live" || path == "/v1/watch" {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	r := &http.Request{Method: s.method, URL: u, Host: s.host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(s.body))}
	for name, value := range map[string]string{"Content-Type": s.mediaType, "Accept": s.accept, "Sec-Fetch-Site": s.site} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r.WithContext(ctx)
}

// Fuzzing begins with requests that reach every route there is, by each of its methods.
func TestFuzzingReachesEveryRoute(t *testing.T) {
	f := newFuzzed(t)
	reached := map[string]bool{}
	f.all.Observe(func(route string) { reached[route] = true })
	for _, s := range shots(f.all) {
		f.ask(t, s.request(t.Context()), s.target+s.body)
		f.unchanged(t)
	}
	for _, route := range f.all.Routes() {
		if !reached[route] {
			t.Errorf("nothing reaches %s", route)
		}
	}
	slices.Sort(f.Kinds)
	if kinds := slices.Sorted(slices.Values(web.Kinds())); !slices.Equal(f.Kinds, kinds) {
		t.Errorf("the page explains problems of the kinds %q, and there are %q", f.Kinds, kinds)
	}
}

// Any request at all.
func FuzzRequest(f *testing.F) {
	z := newFuzzed(f)
	for _, s := range shots(z.all) {
		f.Add(s.method, s.target, s.host, s.mediaType, s.accept, s.site, s.body)
	}
	f.Fuzz(func(t *testing.T, method, target, host, mediaType, accept, site, body string) {
		if r := (shot{method, target, host, mediaType, accept, site, body}).request(t.Context()); r != nil {
			z.ask(t, r, target+body+r.URL.RawQuery+r.URL.Path+r.URL.Query().Encode())
			z.unchanged(t)
		}
	})
}

// Any name, shown in every way.
func FuzzName(f *testing.F) {
	z := newFuzzed(f)
	for _, name := range []string{"m", "a/../b", "<script>alert(1)</script>", "\u202e", "%00", "'\"><img>", "javascript:alert(1)", "e\u0301\u0301\u0301\u0301\u0301\u0301", "\xff", "\x00", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		before := len(z.Secrets)
		s := z.claim(t, driver.Owner{Name: name, Host: name}, driver.Claim{Name: name, Note: name})
		defer func() {
			_ = s.Close(t.Context())
			z.Secrets = z.Secrets[:before]
			z.unchanged(t)
		}()
		id := driver.PublicID(z.Secrets[len(z.Secrets)-1])
		q := "?" + url.Values{"name": {name}}.Encode()
		for _, target := range []string{
			"/line" + q, "/v1/line" + q, "/v1/history" + q, "/v1/watch" + q, "/live" + q + "&page=line", "/", "/contention", "/v1/lines", "/?" + url.Values{"prefix": {name}}.Encode(),
			"/?" + url.Values{"after": {name}}.Encode(), "/v1/lines?" + url.Values{"prefix": {name}, "sort": {"waiting"}}.Encode(), "/break" + q + "&id=" + id + "&fence=0",
		} {
			z.ask(t, shot{method: "GET", target: target, host: "localhost"}.request(t.Context()), name)
		}
	})
}

// Any body of a break: it breaks the claim that it names exactly, and no other.
func FuzzBreak(f *testing.F) {
	z := newFuzzed(f)
	c := z.claims[0]
	f.Add(true, `{"name":"m","id":"0","fence":"0","now":true}`)
	f.Add(true, `{"name":"m","id":"`+c.PublicID+`","fence":"0","now":true,"reason":"\u0000"}`)
	f.Add(true, `{"name":"m","name":"n","ID":"x","fence":"00"}`)
	f.Add(true, `{"store":null,"name":{"m":[1e999]},"id":"\ud800","fence":-1}{}`)
	f.Add(false, "name=m&id="+c.PublicID+"&fence=0&now=1")
	f.Fuzz(func(t *testing.T, asJSON bool, body string) {
		if strings.Contains(body, tokenOf(c)) {
			return // it may be meant
		}
		s := shot{method: "POST", target: "/break", host: "localhost", mediaType: "application/x-www-form-urlencoded", body: body}
		if asJSON {
			s.target, s.mediaType = "/v1/break", "application/json"
		}
		if answer := z.ask(t, s.request(t.Context()), body); answer.StatusCode < 400 {
			t.Errorf("status %d", answer.StatusCode)
		}
		z.unchanged(t)
	})
}
