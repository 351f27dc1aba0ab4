package serve

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// Whatever bytes come in as a request: the server answers, nobody without a token sees a name, nobody sees a token, and nothing is broken.
func FuzzRequest(f *testing.F) {
	const token, name = "anas-token-0123456789", "hidden-name-of-a-lock"
	d := memlock.New()
	c, err := interlock.New(d.Share(), nil)
	if err != nil {
		f.Fatal(err)
	}
	defer c.Close()
	lease, err := c.Mutex(name).Lock(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	defer lease.Release()
	file := filepath.Join(f.TempDir(), "tokens")
	if err := writeFile(file, "token="+token+" name=ana read=* break=*\n"); err != nil {
		f.Fatal(err)
	}
	s, err := newServer(fill(&Options{TokenFile: file, AllowBreak: true, Prefix: "/locks"}))
	if err != nil {
		f.Fatal(err)
	}
	st := newStore("one", "mem:", s.log)
	st.opened(f.Context(), d)
	s.stores = []*store{st}
	s.meters.connections, s.meters.streams = func() int { return 0 }, s.streaming
	pages, err := s.newPages()
	if err != nil {
		f.Fatal(err)
	}
	defer pages.Close()
	s.pages = pages

	for _, line := range []string{
		"GET / HTTP/1.1", "GET /locks/ HTTP/1.1", "GET /metrics HTTP/1.1", "GET /locks/readyz HTTP/1.1", "POST /locks/login HTTP/1.1", "POST /logout HTTP/1.1",
		"GET /locks/%2e%2e/metrics HTTP/1.1", "GET //locks//../metrics HTTP/1.1", "GET /locks/line?store=one&name=" + name + " HTTP/1.1", "HEAD /locks/v1/line?store=one&name=%00 HTTP/1.1",
		"GET /locks/v1/watch?store=one&name=x HTTP/1.1", "OPTIONS * HTTP/1.1", "POST /locks/break HTTP/1.1", "POST /locks/v1/break HTTP/1.1",
	} {
		for _, headers := range []string{
			"", "Authorization: Bearer nobodys-token-012345\r\n", "Authorization: Basic eDp5\r\n", "Cookie: interlock=AAAA\r\n", "Accept: text/html\r\n",
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 31\r\nSec-Fetch-Site: cross-site\r\n",
		} {
			f.Add([]byte(line + "\r\nHost: localhost\r\n" + headers + "\r\ntoken=nobodys-token-012345&next=/"))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || bytes.Contains(raw, []byte(token)) {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // no stream lasts
		r.RemoteAddr = "192.0.2.1:1234"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r.WithContext(ctx))
		if w.Code < 200 || w.Code > 599 || w.Code == http.StatusInternalServerError {
			t.Errorf("%q is answered by %d", raw, w.Code)
		}
		body := w.Body.String()
		if strings.Contains(body, token) || strings.Contains(body, name) && !bytes.Contains(raw, []byte(name)) {
			t.Errorf("%q is answered by a secret:\n%s", raw, body)
		}
		if _, below := s.routeOf(r.URL.EscapedPath()); w.Code == http.StatusOK && !strings.HasPrefix(below, "/login") && below != "/healthz" && below != "/readyz" {
			t.Errorf("%q is answered without a token:\n%s", raw, body)
		}
		if err := lease.Err(); err != nil {
			t.Fatalf("%q has broken the lock: %v", raw, err)
		}
	})
}
