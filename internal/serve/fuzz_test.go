package serve

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/webtest"
	"github.com/interlock-go/interlock/memlock"
)

// What those servers are asked for that are fuzzed.
const fuzzToken, fuzzName = "anas-token-0123456789", "hidden-name-of-a-lock"

// fuzzed are servers of one store, in which somebody holds a name.
type fuzzed struct {
	guarded  *server // asks for a token
	open     *server // lets everybody see all, and break it
	readOnly *server // lets everybody see all
	store    *memlock.Driver
	claims   []driver.Holder

	webtest.Judge
}

func newFuzzed(t testing.TB) *fuzzed {
	t.Helper()
	z := &fuzzed{store: memlock.New(), Judge: webtest.Judge{
		Statuses: fuzzStatuses, Secrets: []string{fuzzToken, driver.NewID(), driver.NewID()}, Kinds: webtest.Kinds(t, "../../docs/web.md"), Base: "/locks/",
		Defences: webtest.Defences(""),
	}}
	session, err := z.store.Share().Open(t.Context(), driver.Spec{ID: z.Secrets[1], TTL: 24 * 3600e9, Owner: driver.Owner{Name: "ann"}})
	if err == nil {
		_, err = session.Acquire(t.Context(), driver.Claim{Name: fuzzName, ID: z.Secrets[2], Kind: driver.Mutex, Weight: driver.All, Limit: driver.All})
	}
	if err != nil {
		t.Fatal(err)
	}
	z.claims = z.line(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := writeFile(tokens, "token="+fuzzToken+" name=ana read=* break=*\n"); err != nil {
		t.Fatal(err)
	}
	z.guarded = z.server(t, &Options{TokenFile: tokens, AllowBreak: true, Prefix: "/locks"})
	z.open = z.server(t, &Options{AllowBreak: true, Prefix: "/locks"})
	z.readOnly = z.server(t, &Options{Prefix: "/locks"})
	return z
}

func (z *fuzzed) server(t testing.TB, o *Options) *server {
	t.Helper()
	s, err := newServer(fill(o))
	if err != nil {
		t.Fatal(err)
	}
	st := newStore("one", "mem:", s.log)
	st.opened(t.Context(), z.store.Share())
	s.stores = []*store{st}
	s.meters.connections, s.meters.streams = func() int { return 0 }, s.streams.count
	pages, err := s.newPages()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pages.Close() })
	s.pages = pages
	return s
}

func (z *fuzzed) line(t testing.TB) []driver.Holder {
	t.Helper()
	l, err := z.store.Line(context.Background(), fuzzName)
	if err != nil {
		t.Fatal(err)
	}
	return l.Claims
}

// ask makes the request of all servers, and judges the answers. It returns the open server's, nil
// if this is no request.
func (z *fuzzed) ask(t testing.TB, raw []byte) *httptest.ResponseRecorder {
	t.Helper()
	var last *httptest.ResponseRecorder
	for _, s := range []*server{z.guarded, z.readOnly, z.open} {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || bytes.Contains(raw, []byte(fuzzToken)) {
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, below := s.routeOf(r.URL.EscapedPath())
		if streamRoutes[below] {
			cancel() // a stream ends with its beginning
		}
		r.RemoteAddr = "192.0.2.1:1234"
		last = httptest.NewRecorder()
		s.ServeHTTP(last, r.WithContext(ctx))
		cancel()
		z.Answer(t, r.Method, last.Result(), last.Body.Bytes())
		if last.Code == http.StatusSeeOther && below != "/logout" {
			t.Errorf("status %d:\n%s", last.Code, last.Body)
		}
		if s == z.guarded {
			if strings.Contains(last.Body.String(), fuzzName) && !bytes.Contains(raw, []byte(fuzzName)) {
				t.Errorf("a name is told without a token:\n%s", last.Body)
			}
			if last.Code == http.StatusOK && !strings.HasPrefix(below, "/login") && below != "/healthz" && below != "/readyz" {
				t.Errorf("it is answered without a token:\n%s", last.Body)
			}
		}
		if now := z.line(t); !slices.Equal(now, z.claims) {
			t.Fatalf("the line was changed from %+v to %+v", z.claims, now)
		}
	}
	return last
}

// fuzzStatuses are those that a request of whatever shape may have. 5xx is none of them.
var fuzzStatuses = []int{200, 301, 303, 400, 401, 403, 404, 405, 409, 413, 415, 421, 429}

// table returns the method and the label of each route, as the server itself says which methods a
// path has.
func (s *server) table(t testing.TB, paths []string) (all []string) {
	t.Helper()
	for _, path := range paths {
		r := httptest.NewRequest("BREW", path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("BREW %s is answered by %d", path, w.Code)
		}
		label, _ := s.routeOf(path)
		for method := range strings.SplitSeq(w.Header().Get("Allow"), ", ") {
			if method != http.MethodHead {
				all = append(all, method+" "+label)
			}
		}
	}
	return all
}

// paths are those of all routes, and of what a page loads.
func (s *server) paths(t testing.TB) (all []string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	for _, loaded := range regexp.MustCompile(`"(static/[^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		all = append(all, "/"+loaded[1])
	}
	if len(all) == 0 {
		t.Errorf("the page loads nothing:\n%s", w.Body)
	}
	for path := range routes {
		all = append(all, path)
	}
	return all
}

// shots are where fuzzing begins: each method of each route, with a prefix and without, with each
// credential.
func (s *server) shots(t testing.TB) (all [][]byte) {
	t.Helper()
	const form, object = "name=x&id=x&fence=1", `{"name":"x","id":"x","fence":"1"}`
	lines := []string{
		"GET /locks HTTP/1.1", "GET /locks/%2e%2e/metrics HTTP/1.1", "GET //locks//../metrics HTTP/1.1", "GET /locks/line?store=one&name=" + fuzzName + " HTTP/1.1",
		"HEAD /locks/v1/line?store=one&name=%00 HTTP/1.1", "GET /v1%2Fline?name=%2e%2e%2f HTTP/1.0", "OPTIONS * HTTP/1.1", "CONNECT localhost:1 HTTP/1.1", "GET http://localhost/ HTTP/1.1",
	}
	for _, path := range s.paths(t) {
		query := map[string]string{"/live": "?page=line&name=x", "/break": "?name=x&id=x&fence=1"}[path]
		for _, name := range []string{"/line", "/v1/line", "/v1/history", "/v1/watch"} {
			if path == name {
				query = "?name=x"
			}
		}
		lines = append(lines, "GET "+path+query+" HTTP/1.1", "HEAD /locks"+path+query+" HTTP/1.1", "BREW "+path+" HTTP/1.1")
	}
	for _, line := range lines {
		for _, headers := range []string{"", "Authorization: Bearer nobodys-token-012345\r\nAccept: text/html\r\n", "Authorization: Basic eDp5\r\n", "Cookie: interlock=AAAA\r\n"} {
			all = append(all, []byte(line+"\r\nHost: localhost\r\n"+headers+"\r\n"))
		}
	}
	for _, route := range s.table(t, s.paths(t)) {
		path, ok := strings.CutPrefix(route, "POST ")
		if !ok {
			continue
		}
		for body, mediaType := range map[string]string{form: "application/x-www-form-urlencoded", object: "application/json", "token=nobodys-token-012345&next=/": "application/x-www-form-urlencoded"} {
			for _, site := range []string{"same-origin", "cross-site"} {
				for _, prefix := range []string{"", "/locks"} {
					var raw bytes.Buffer
					r, err := http.NewRequest(http.MethodPost, "http://localhost"+prefix+path, strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Content-Type", mediaType)
					r.Header.Set("Sec-Fetch-Site", site)
					if err := r.Write(&raw); err != nil {
						t.Fatal(err)
					}
					all = append(all, raw.Bytes())
				}
			}
		}
	}
	return all
}

// Fuzzing begins with requests that reach every route there is, by each of its methods.
func TestFuzzingReachesEveryRoute(t *testing.T) {
	t.Parallel()
	z := newFuzzed(t)
	reached := map[string]bool{}
	for _, raw := range z.open.shots(t) {
		w := z.ask(t, raw)
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if w == nil || err != nil {
			t.Fatalf("%q is no request: %v", raw, err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if label, _ := z.open.routeOf(r.URL.EscapedPath()); !slices.Contains([]int{404, 405, 415, 421}, w.Code) {
			reached[r.Method+" "+label] = true
		}
	}
	for _, route := range z.open.table(t, z.open.paths(t)) {
		if !reached[route] {
			t.Errorf("nothing reaches %s", route)
		}
	}
}

// Each page of package web has a label here: what has none is counted as what is not there.
func TestEveryPageHasALabel(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../web/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t\t"(/[^"]*)": +\{"[A-Z]+": \{`).FindAllSubmatch(text, -1)
	if len(found) < 10 {
		t.Fatalf("%d routes were found, want all: is the table still in that file?", len(found))
	}
	for _, m := range found {
		if !routes[string(m[1])] {
			t.Errorf("%s has no label", m[1])
		}
	}
}

// Whatever bytes come in as a request: the server answers, nobody without a token sees a name,
// nobody sees a secret, and nothing is broken.
func FuzzRequest(f *testing.F) {
	z := newFuzzed(f)
	for _, raw := range z.open.shots(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { z.ask(t, raw) })
}
