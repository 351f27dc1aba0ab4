package serve

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A prefix that is the beginning of a route is the prefix all the same, and a path below it means
// the same here and in package web: the cookie of a login is good for no program's address.
func TestPrefixIsTheBeginningOfARoute(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/lines": "/v1/lines", "/v1/v1/lines": "/v1/lines", "/v1/": "/", "/v1/break": "/break", "/v1/v1/break": "/v1/break", "/v1/metrics": "/metrics", "/metrics": "/metrics", "/v1/x": "/x",
	} {
		s := &server{opts: &Options{Prefix: "/v1"}}
		if _, below := s.routeOf(path); below != want {
			t.Errorf("with the prefix /v1 %s is %s, want %s", path, below, want)
		}
	}
}

// What cannot be is answered clearly, by a status that says whose fault it is, and with the
// defences of every answer.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	_, at := newTried(t)
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}})
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
	}{
		{"POST", "/healthz", nil, 405},
		{"DELETE", "/readyz", nil, 405},
		{"PUT", "/metrics", nil, 405},
		{"OPTIONS", "/metrics", nil, 405},
		{"FOO", "/login", nil, 405},
		{"GET", "/logout", nil, 405},
		{"POST", "/login.css", nil, 405},
		{"GET", "/metrics", []string{"Host", "evil.example"}, 421},
		{"GET", "/login", []string{"Host", "evil.example:7070"}, 421},
		{"GET", "/login.css", []string{"Host", "127.0.0.1.evil.example"}, 421},
	} {
		a := s.ask(c.method, c.path, "", c.headers...)
		if a.status != c.status || a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.body, `"status":`) ||
			a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s %v: %d %v\n%s, want %d", c.method, c.path, c.headers, a.status, a.header, a.body, c.status)
		}
		if c.status == 405 && a.header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	const host = " HTTP/1.1\r\nHost: localhost\r\n"
	for text, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n": 431,
		"GET /login HTTP/1.0\r\n\r\n":                                       421,
		"GET /healthz HTTP/1.0\r\n\r\n":                                     200,
		"GET /login HTTP/1.1\r\n\r\n":                                       400,
		"GET /login HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n":         400,
		"\x16\x03\x01\r\n\r\n":                                              400,
		"GET http://evil.example/login HTTP/1.1\r\nHost: localhost\r\n\r\n": 421,
		"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n":         405,

		// A name stands in the query, decoded once.
		"GET /v1/line?name=a%2Fb" + host + "\r\n":                          200,
		"GET /v1/line?name=..%2F..%2Fmetrics" + host + "\r\n":              200,
		"GET /v1/line?name=%2e%2e" + host + "\r\n":                         200,
		"GET /v1/line?name=%252e" + host + "\r\n":                          200,
		"GET /v1/line?name=a/../b" + host + "\r\n":                         200,
		"GET /v1/line?name=a%00b" + host + "\r\n":                          400,
		"GET /v1/line?name=a%0d%0aX:%20y" + host + "\r\n":                  400,
		"GET /v1/line?name=%c0%ae" + host + "\r\n":                         400,
		"GET /v1/line?name=a\x01b" + host + "\r\n":                         400,
		"GET /v1/line?name=a b" + host + "\r\n":                            400,
		"GET /v1/line?name=" + strings.Repeat("%61", 1025) + host + "\r\n": 400,

		// A path is compared as it was sent, and nothing is cleaned.
		"GET /v1/../metrics" + host + "\r\n":           404,
		"GET /%2e%2e/metrics" + host + "\r\n":          404,
		"GET /v1%2Fline?name=a" + host + "\r\n":        404,
		"GET //metrics" + host + "\r\n":                404,
		"GET /./metrics" + host + "\r\n":               404,
		"GET /metrics/" + host + "\r\n":                404,
		"GET /metrics;a=b" + host + "\r\n":             404,
		"GET /metrics%00" + host + "\r\n":              404,
		"GET /METRICS" + host + "\r\n":                 404,
		"GET /%6detrics" + host + "\r\n":               404,
		"GET /v1/line/a%2Fb" + host + "\r\n":           404,
		"GET /static/../../etc/passwd" + host + "\r\n": 404,
		"GET metrics" + host + "\r\n":                  400,
		"GET /%zz" + host + "\r\n":                     400,
		"OPTIONS *" + host + "\r\n":                    404,
		"GET *" + host + "\r\n":                        404,

		// A body that is not what its header says. Nobody may break anything here.
		"POST /v1/break" + host + "Content-Length: 1000000000\r\n\r\n":                                                       403,
		"POST /v1/break" + host + "Content-Length: -1\r\n\r\n":                                                               400,
		"POST /v1/break" + host + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}":                                         400,
		"POST /v1/break" + host + "Transfer-Encoding: gzip\r\n\r\n":                                                          501,
		"POST /login" + host + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}":                                     415,
		"POST /login" + host + "Content-Type: multipart/form-data\r\nContent-Length: 2\r\n\r\n{}":                            415,
		"POST /login" + host + "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n": 400,
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.at, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = c.Write([]byte(text)) // the server may have answered by then
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		switch {
		case err != nil || resp.StatusCode != want:
			t.Errorf("%.80q: %v, %v, want %d", text, resp, err, want)
		case resp.Header.Get("Interlock-Version") == "" && want != 400 && want != 431 && want != 501:
			t.Errorf("%.80q is answered without the defences: %v", text, resp.Header)
		}
		_ = c.Close()
	}
}

// A body that is announced and never comes keeps nobody waiting: net/http must find the one that it
// made when it looks how much is left.
func TestTheBodyIsLeftToTheServer(t *testing.T) {
	t.Parallel()
	z := newFuzzed(t)
	for _, target := range []string{"/login", "/v1/break", "/break", "/nothing", "/healthz", "/metrics"} {
		r := httptest.NewRequest(http.MethodPost, target, io.NopCloser(strings.NewReader("{}")))
		r.Host = "localhost"
		before := r.Body
		z.open.ServeHTTP(httptest.NewRecorder(), r)
		if r.Body != before {
			t.Errorf("%s: the body is another one when it was answered", target)
		}
	}
}

// A body that is announced as longer than any may be is not waited for.
func TestALongBodyIsNotAwaited(t *testing.T) {
	t.Parallel()
	z := newFuzzed(t)
	for _, target := range []string{"/v1/break", "/break", "/nothing", "/healthz", "/metrics"} {
		r := httptest.NewRequest(http.MethodPost, target, io.NopCloser(unread{t, target}))
		r.Host, r.ContentLength = "localhost", 1<<30
		w := httptest.NewRecorder()
		if z.open.ServeHTTP(w, r); w.Code < 400 {
			t.Errorf("%s: answered by %d", target, w.Code)
		}
	}
}

// unread is a body that nobody may read.
type unread struct {
	t      *testing.T
	target string
}

func (u unread) Read([]byte) (int, error) {
	u.t.Errorf("%s: its body is waited for", u.target)
	return 0, io.EOF
}
