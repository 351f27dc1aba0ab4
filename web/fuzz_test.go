package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

var field = regexp.MustCompile(`<input [^>]*value="[^"]*"`)

// statuses are those that a request of whatever shape may have. 500 is none of them.
var statuses = []int{200, 301, 303, 400, 403, 404, 405, 409, 413, 415, 421, 429}

// fuzzed returns a handler of a store in which ann holds "m", and her claim.
func fuzzed(f *testing.F) (*web.Handler, *memlock.Driver, driver.Holder) {
	f.Helper()
	store := memlock.New()
	h, err := web.New([]web.Store{{Name: "main", Driver: store}}, &web.Options{Authorize: everything, Prefix: "/p", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = h.Close() })
	s, err := store.Open(f.Context(), driver.Spec{ID: driver.NewID(), TTL: 24 * 3600e9, Owner: driver.Owner{Name: "ann<script>\u202e"}})
	if err != nil {
		f.Fatal(err)
	}
	c := driver.Claim{Name: "m", ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Note: "\"'><img src=x>"}
	if _, err := s.Acquire(f.Context(), c); err != nil {
		f.Fatal(err)
	}
	l, err := store.Line(f.Context(), "m")
	if err != nil {
		f.Fatal(err)
	}
	return h, store, l.Claims[0]
}

// judged looks at what was answered to a request: it is whole, of the type that it says, and nothing of what was sent runs in it.
func judged(t *testing.T, h http.Handler, r *http.Request) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := w.Result()
	text, _ := io.ReadAll(answer.Body)
	if !slices.Contains(statuses, answer.StatusCode) {
		t.Errorf("status %d:\n%s", answer.StatusCode, text)
	}
	if answer.Header.Get("Content-Security-Policy") == "" {
		t.Error("no policy")
	}
	switch mediaType := answer.Header.Get("Content-Type"); {
	case strings.Contains(mediaType, "json"):
		if !json.Valid(text) {
			t.Errorf("no JSON: %q", text)
		}
	case strings.Contains(mediaType, "html"):
		lower := bytes.ToLower(text)
		lower = field.ReplaceAll(lower, nil) // what is sent again by a form is in it as it is
		for _, word := range []string{"<script>", "<img", `"javascript:`, "\u202e"} {
			if bytes.Contains(lower, []byte(word)) {
				t.Errorf("%q in a page:\n%s", word, text)
			}
		}
		if !bytes.HasSuffix(text, []byte("</html>\n")) {
			t.Errorf("a page is cut short:\n%s", text)
		}
	}
	return answer
}

// Any request at all, but for streams, which do not end.
func FuzzRequest(f *testing.F) {
	h, _, c := fuzzed(f)
	for _, target := range targets {
		method, path, _ := strings.Cut(target, " ")
		f.Add(method, path, "localhost", "application/json", `{"name":"m","id":"x","fence":"1"}`)
		f.Add(method, "/p"+path, "localhost:1", "application/x-www-form-urlencoded", "name=m&id=x&fence=1")
	}
	f.Add("GET", "/p/line?name=%3Cscript%3Ealert(1)%3C/script%3E&all=1", "localhost", "", "")
	f.Add("GET", "/?prefix=%22%3E%3Cimg%20src=x%3E&after=a", "[::1]:1", "", "")
	f.Add("GET", "//../p//", "evil.example", "", "")
	f.Fuzz(func(t *testing.T, method, target, host, mediaType, body string) {
		u, err := url.Parse(target)
		if err != nil || u.Host != "" || u.Opaque != "" || strings.Contains(u.Path, "/live") || strings.Contains(u.Path, "/watch") {
			return
		}
		r := (&http.Request{
			Method: method, URL: u, Host: host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {mediaType}, "Accept": {body}},
			Body: io.NopCloser(strings.NewReader(body)),
		}).WithContext(t.Context())
		answer := judged(t, h, r)
		if answer.StatusCode == http.StatusSeeOther && !strings.HasPrefix(answer.Header.Get("Location"), "/p/line?") {
			t.Errorf("it leads to %q", answer.Header.Get("Location"))
		}
		_ = c
	})
}

// Any name, shown in every way.
func FuzzName(f *testing.F) {
	h, store, _ := fuzzed(f)
	for _, name := range []string{"m", "a/../b", "<script>alert(1)</script>", "\u202e", "%00", "'\"><img>", "javascript:alert(1)", "e\u0301\u0301\u0301\u0301\u0301\u0301", "\xff", "\x00", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, err := store.Share().Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 3600e9, Owner: driver.Owner{Name: name, Host: name}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(t.Context()) }()
		c := driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true, Note: name}
		if _, err := s.Acquire(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		q := "?" + url.Values{"name": {name}}.Encode()
		for _, target := range []string{"/line" + q, "/v1/line" + q, "/v1/history" + q, "/", "/contention", "/v1/lines", "/?" + url.Values{"prefix": {name}}.Encode(), "/break" + q + "&id=" + driver.PublicID(c.ID) + "&fence=0"} {
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Host = "localhost"
			judged(t, h, r)
		}
	})
}

// Any body of a break: it breaks the claim that it names exactly, and no other.
func FuzzBreak(f *testing.F) {
	h, store, c := fuzzed(f)
	f.Add(true, `{"name":"m","id":"0","fence":"0","now":true}`)
	f.Add(true, `{"name":"m","id":"`+c.PublicID+`","fence":"0","now":true,"reason":"\u0000"}`)
	f.Add(true, `{"name":"m","name":"n","ID":"x","fence":"00"}`)
	f.Add(false, "name=m&id="+c.PublicID+"&fence=0&now=1")
	f.Fuzz(func(t *testing.T, asJSON bool, body string) {
		if strings.Contains(body, tokenOf(c)) {
			return // it may be meant
		}
		target, mediaType := "/break", "application/x-www-form-urlencoded"
		if asJSON {
			target, mediaType = "/v1/break", "application/json"
		}
		r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", mediaType)
		if answer := judged(t, h, r); answer.StatusCode < 300 {
			t.Errorf("status %d", answer.StatusCode)
		}
		if l, err := store.Line(t.Context(), "m"); err != nil || len(l.Claims) == 0 || l.Claims[0].PublicID != c.PublicID || l.Claims[0].Broken {
			t.Fatalf("the claim is gone: %+v, %v", l, err)
		}
	})
}
