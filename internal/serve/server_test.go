package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// Health is answered for everybody, and says whether the process, and whether the stores answer.
func TestHealth(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	_, other := newTried(t)
	s := serves(t, &Options{Stores: [][2]string{{"one", at}, {"other", other}}, TokenFile: write(t, filepath.Join(t.TempDir(), "tokens"), someTokens)})
	for _, path := range []string{"/healthz", "/readyz"} {
		for _, host := range []string{"", "evil.example", "10.9.8.7:7070"} {
			if a := s.ask("GET", path, "", "Host", host); a.status != 200 || !strings.Contains(a.body, `"status":"ok"`) {
				t.Errorf("%s by host %q: %d %s", path, host, a.status, a.body)
			}
		}
		if a := s.ask("HEAD", path, ""); a.status != 200 || a.body != "" {
			t.Errorf("HEAD %s: %d %q", path, a.status, a.body)
		}
	}
	one.set(func() { one.fails = errors.New("the wire of SECRET is cut") })
	eventually(t, "not ready", func() bool { return s.ask("GET", "/readyz", "").status == 503 })
	if a := s.ask("GET", "/readyz", ""); a.body != `{"status":"not ready","stores":{"one":"down","other":"up"}}`+"\n" {
		t.Errorf("not ready: %s", a.body)
	}
	if a := s.ask("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("the process is not well since a store is away: %d", a.status)
	}
	one.set(func() { one.fails = nil })
	eventually(t, "ready again", func() bool { return s.ask("GET", "/readyz", "").status == 200 })
	for _, want := range []string{`msg="the store does not answer" store=one error="the wire`, `msg="the store answers again" store=one`} {
		if !s.log.has(want) {
			t.Errorf("the log has no %s:\n%s", want, s.log)
		}
	}
}

// A store that cannot be reached does not keep the server from starting. It is down until it is there, and comes by itself.
func TestStoreIsDownAtTheStart(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	one.opens = driver.ErrNotSent
	_, other := newTried(t)
	s := serves(t, &Options{Stores: [][2]string{{"one", at}, {"other", other}}})
	if a := s.ask("GET", "/readyz", ""); a.status != 503 || !strings.Contains(a.body, `"one":"down","other":"up"`) {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/metrics", ""); !strings.Contains(a.body, `interlock_store_up{store="one"} 0`) || !strings.Contains(a.body, `interlock_store_up{store="other"} 1`) ||
		strings.Contains(a.body, `interlock_lines{store="one"}`) {
		t.Errorf("metrics: %s", a.body)
	}
	one.set(func() { one.opens = nil })
	eventually(t, "it is open", func() bool { return s.ask("GET", "/readyz", "").status == 200 })
	if !s.log.has(`msg="the store does not answer" store=one`) || !s.log.has(`msg="the store is open" store=one`) && !s.log.has(`msg="the store answers again" store=one`) {
		t.Errorf("the log:\n%s", s.log)
	}
	one.hold(t, "report")
	eventually(t, "what stands there is counted", func() bool {
		return strings.Contains(s.ask("GET", "/metrics", "").body, `interlock_lines{store="one"} 1`)
	})
}

// What is measured has labels of closed sets, and no lock's name; the list of names is not read for each scrape.
func TestMetrics(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	lease := one.hold(t, "coupons/very-secret-customer")
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}})
	for _, path := range []string{"/nothing-at-all", "/v1/line?name=very-secret-customer", "/line?name=very-secret-customer", "/static/very-secret-customer"} {
		s.ask("GET", path, "")
	}
	lists := func() (n int) {
		one.set(func() { n = one.lists })
		return n
	}
	a := s.ask("GET", "/metrics", "")
	before := lists()
	for range 20 {
		a = s.ask("GET", "/metrics", "")
	}
	if n := lists() - before; n > 5 { // on a machine so slow that 20 scrapes take a minute
		t.Errorf("20 scrapes have read %d lists of all names", n)
	}
	if got := a.header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("type %q", got)
	}
	for _, want := range []string{
		`interlock_store_up{store="one"} 1`, `interlock_lines{store="one"} 1`, `interlock_claims{store="one",state="holds"} 1`, `interlock_claims{store="one",state="waits"} 0`,
		`interlock_oldest_wait_seconds{store="one"} 0`, `interlock_breaks_total{store="one",mode="now"} 0`, `interlock_http_requests_total{route="other",code="404"} 1`, `interlock_http_requests_total{route="/static/",code="404"} 1`,
		`interlock_http_request_duration_seconds_bucket{route="/metrics",le="+Inf"} 20`, "# TYPE interlock_store_latency_seconds histogram", `interlock_snapshot_age_seconds{store="one"} `,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s in\n%s", want, a.body)
		}
	}
	if strings.Contains(a.body, "very-secret") {
		t.Errorf("a lock's name is in\n%s", a.body)
	}
	wellFormed(t, a.body)
	if b := s.ask("HEAD", "/metrics", ""); b.status != 200 || b.body != "" {
		t.Errorf("HEAD: %d %q", b.status, b.body)
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

var sample = regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="[^"\\\n]*"(?:,[a-z]+="[^"\\\n]*")*\})? (NaN|[0-9.e+-]+)$`)

// wellFormed holds a page of metrics to the text format: each family once, with its help and type before its samples, and no series twice.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	families, series, family := map[string]bool{}, map[string]bool{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if words := strings.Fields(line); strings.HasPrefix(line, "# HELP ") {
			family = words[2]
			if families[family] {
				t.Errorf("family %s twice", family)
			}
			families[family] = true
			continue
		} else if strings.HasPrefix(line, "# TYPE ") {
			if words[2] != family || !slices.Contains([]string{"gauge", "counter", "histogram"}, words[3]) {
				t.Errorf("type %s below %s", line, family)
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no sample: %s", line)
			continue
		}
		name := m[1]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if cut, ok := strings.CutSuffix(m[1], suffix); ok && cut == family {
				name = cut
			}
		}
		if name != family || series[m[1]+m[2]] {
			t.Errorf("%s stands below %s, or twice", line, family)
		}
		series[m[1]+m[2]] = true
	}
}

// A person gives the token to a form once. The browser then has a cookie, and no address has the token.
func TestLogin(t *testing.T) {
	t.Parallel()
	_, at := newTried(t)
	s := serves(t, &Options{
		Stores: [][2]string{{"one", at}}, Prefix: "/locks", Hosts: []string{"locks.example.org"}, BehindTLSProxy: true,
		TokenFile: write(t, filepath.Join(t.TempDir(), "tokens"), someTokens+"token=late-token-0123456789 name=late read=* expires=2020-01-01\n"),
	})
	browser := []string{"Host", "locks.example.org", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Site", "same-origin"}
	a := s.ask("GET", "/locks/line?store=one&name=a%2Fb", "", browser...)
	next := regexp.MustCompile(`name="next" type="hidden" value="([^"]*)"`).FindStringSubmatch(a.body)
	if a.status != 401 || next == nil || next[1] != "/locks/line?store=one&amp;name=a%2Fb" || !strings.Contains(a.header.Get("WWW-Authenticate"), "Bearer") {
		t.Fatalf("without a login: %d, %v\n%s", a.status, a.header, a.body)
	}
	form := func(token, next string) string { return url.Values{"token": {token}, "next": {next}}.Encode() }
	post := func(body string, more ...string) answer {
		t.Helper()
		return s.ask("POST", "/locks/login", body, append(append(slices.Clone(browser), "Content-Type", "application/x-www-form-urlencoded"), more...)...)
	}
	a = post(form(" anas-token-0123456789 ", "/locks/line?store=one&name=a%2Fb"))
	cookie := a.header.Get("Set-Cookie")
	if a.status != 303 || a.header.Get("Location") != "/locks/line?store=one&name=a%2Fb" ||
		!regexp.MustCompile(`^__Secure-interlock=[\w-]{75}; Path=/locks/; Max-Age=28800; HttpOnly; Secure; SameSite=Strict$`).MatchString(cookie) {
		t.Fatalf("the login: %d, %v\n%s", a.status, a.header, a.body)
	}
	cookie, _, _ = strings.Cut(cookie, ";")
	if a = s.ask("GET", "/locks/", "", append(browser, "Cookie", cookie)...); a.status == 401 || a.status == 421 {
		t.Errorf("after the login: %d\n%s", a.status, a.body)
	}
	if a = s.ask("GET", "/locks/login", "", append(browser, "Cookie", cookie)...); a.status != 200 || !strings.Contains(a.body, "logged in as <b>ana</b>") {
		t.Errorf("the page of the login then: %d\n%s", a.status, a.body)
	}
	// A browser sends the cookie wherever a link leads: it is good for no program's address.
	for _, path := range []string{"/locks/v1/lines", "/locks/metrics", "/metrics"} {
		if a = s.ask("GET", path, "", "Host", "locks.example.org", "Cookie", cookie); a.status != 401 {
			t.Errorf("%s with the cookie alone: %d", path, a.status)
		}
	}

	for _, c := range []struct {
		what   string
		a      answer
		status int
		says   string
	}{
		{"a wrong token", post(form("nobodys-token-0123", "/locks/")), 401, "The token is not known here."},
		{"none", post(form("", "/locks/")), 401, "The token is not known here."},
		{"one that is over", post(form("late-token-0123456789", "/locks/")), 401, "The token of late expired on 2020-01-02"},
		{"a form of another site", post(form("anas-token-0123456789", "/"), "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"), 403, "cross-origin"},
		{"a form that is none", post("%zz=1"), 400, "bad-request"},
		{"too much", post("token=" + strings.Repeat("a", maxBody)), 413, "too-large"},
		{"JSON", s.ask("POST", "/locks/login", `{"token":"anas-token-0123456789"}`, append(browser, "Content-Type", "application/json")...), 415, "media-type"},
		{"by another name", s.ask("POST", "/locks/login", form("anas-token-0123456789", "/"), "Host", "evil.example", "Content-Type", "application/x-www-form-urlencoded"), 421, "wrong-host"},
		{"by PUT", s.ask("PUT", "/locks/login", "", browser...), 405, "method"},
		{"in the address", s.ask("POST", "/locks/login?token=anas-token-0123456789", "", append(browser, "Content-Type", "application/x-www-form-urlencoded")...), 401, "not known"},
	} {
		if c.a.status != c.status || !strings.Contains(c.a.body, c.says) || c.a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v\n%s, want %d and %q", c.what, c.a.status, c.a.header, c.a.body, c.status, c.says)
		}
	}
	// The form leads to no other site.
	for _, next := range []string{"https://evil.example/", "//evil.example/", "/\\evil.example", "/locks//evil.example\\", "javascript:alert(1)", "/elsewhere", "", "/locks/\r\nSet-Cookie: a=b", "http:/locks/", "/locks/../evil", "/locks/%2e%2e/evil", "/locks/./../evil", "/locks/.%2E"} {
		a := post(form("anas-token-0123456789", next))
		to, err := url.Parse(a.header.Get("Location"))
		if a.status != 303 || err != nil || to.Host != "" || to.Scheme != "" || !strings.HasPrefix(to.Path, "/locks/") || strings.Contains(to.Path, "..") || strings.HasPrefix(a.header.Get("Location"), "//") {
			t.Errorf("next %q leads to %q (%d)", next, a.header.Get("Location"), a.status)
		}
	}
	a = s.ask("POST", "/locks/logout", "", append(browser, "Cookie", cookie)...)
	if a.status != 303 || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %d %v", a.status, a.header)
	}
	if a = s.ask("POST", "/locks/logout", "", "Host", "locks.example.org", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("logout by another site: %d", a.status)
	}

	// Ten wrong ones in a minute are enough; with the right one one gets in all the same.
	wrong := func() int {
		return s.ask("GET", "/metrics", "", "Host", "locks.example.org", "Authorization", "Bearer nobodys-token-0123").status
	}
	eventually(t, "too many", func() bool { return wrong() == 429 })
	if a := s.ask("GET", "/metrics", "", "Host", "locks.example.org", "Authorization", "Bearer prometheus-0123456789"); a.status != 200 {
		t.Errorf("the right one: %d", a.status)
	}
	for _, secret := range []string{"anas-token-0123", "nobodys-token", "late-token", strings.SplitN(cookie, "=", 2)[1]} {
		if s.log.has(secret) {
			t.Errorf("the log has %s:\n%s", secret, s.log)
		}
	}
}

// A prefix that is the beginning of a route is the prefix all the same, and a path below it means the same here and in package web: the cookie of a
// login is good for no program's address.
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

// What cannot be is answered clearly, by a status that says whose fault it is, and with the defences of every answer.
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
		case resp.Header.Get("Interlock-Version") == "" && want != 400 && want != 431 && want != 501: // by which net/http answers
			t.Errorf("%.80q is answered without the defences: %v", text, resp.Header)
		}
		_ = c.Close()
	}
}

// A body that is announced and never comes keeps nobody waiting: net/http must find the one that it made when it looks how much is left.
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

// The certificate of a client is a credential, by the names of the file; TLS follows its files.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := makeCA(t, dir)
	_, at := newTried(t)
	s := serves(t, &Options{
		Stores: [][2]string{{"one", at}}, TLSCert: ca.serverCert, TLSKey: ca.serverKey, ClientCA: ca.caFile,
		TokenFile: write(t, filepath.Join(dir, "tokens"), someTokens+"cert=ops.example.org name=ops read=*\n"),
	})
	by := func(name string) *http.Client {
		tr := &http.Transport{TLSClientConfig: ca.client(t, name), ForceAttemptHTTP2: true}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	for name, want := range map[string]int{"ops": 200, "stranger": 401, "": 401} {
		if a := s.askBy(by(name), "GET", "/metrics", ""); a.status != want {
			t.Errorf("certificate %q: %d, want %d\n%s", name, a.status, want, a.body)
		}
	}
	if a := s.askBy(by(""), "GET", "/metrics", "", "Authorization", "Bearer prometheus-0123456789"); a.status != 200 {
		t.Errorf("a token: %d", a.status)
	}
	if a := s.askBy(by(""), "GET", "/healthz", ""); a.status != 200 {
		t.Errorf("health without a certificate: %d", a.status)
	}
	other := makeCA(t, t.TempDir())
	stranger := by("")
	stranger.Transport.(*http.Transport).TLSClientConfig.Certificates = other.client(t, "ops").Certificates
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/metrics", nil)
	if resp, err := stranger.Do(req); err == nil { // else it is refused as early as that
		if resp.StatusCode == http.StatusOK {
			t.Error("a certificate of another CA is good")
		}
		_ = resp.Body.Close()
	}

	before := by("ops")
	if a := s.askBy(before, "GET", "/metrics", ""); a.status != 200 {
		t.Errorf("before: %d", a.status)
	}

	// A new certificate, of another CA, is what the next connection sees.
	next := makeCA(t, dir)
	fresh := func() bool {
		tr := &http.Transport{TLSClientConfig: next.client(t, "")}
		defer tr.CloseIdleConnections()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/healthz", nil)
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	}
	eventually(t, "the new certificate is used", fresh)

	// The connection of before goes on; its certificate is good for nothing any more, whose CA is no longer one of the file's.
	if a := s.askBy(before, "GET", "/metrics", ""); a.status != 401 || !strings.Contains(a.body, "no longer one of --client-ca") {
		t.Errorf("a certificate of the former CA, on its connection: %d %s", a.status, a.body)
	}
}

// Whoever opens connections and asks for nothing takes the place of others who ask for nothing, and of nobody else.
func TestD07_HalfOpenConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	client, err := interlock.New(one.Share(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Mutex("report").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}, Connections: 20})
	flood(t, strings.TrimPrefix(s.at, "http://"), 300)
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 5 {
		if a := s.askBy(fresh, "GET", "/healthz", ""); a.status != 200 {
			t.Errorf("beside 300 half-open connections: %d", a.status)
		}
	}
	if err := errors.Join(client.Health(t.Context()), lease.Release()); err != nil {
		t.Errorf("a renewal and a release in the process of the server: %v", err)
	}
	text := s.askBy(fresh, "GET", "/metrics", "").body
	if !regexp.MustCompile(`interlock_http_dropped_total\{what="connection"\} (2[89]\d|3\d\d)\n`).MatchString(text) || !regexp.MustCompile(`interlock_http_connections (1?\d|20)\n`).MatchString(text) {
		t.Errorf("what was dropped is not counted, or more than 20 are open:\n%s", text)
	}
}

// flood opens connections, one in two of them with the first half of a request, until the test ends.
func flood(t *testing.T, to string, n int) {
	t.Helper()
	d := net.Dialer{Timeout: 30 * time.Second}
	for i := range n {
		c, err := d.DialContext(t.Context(), "tcp", to)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return
			}
			t.Fatalf("connection %d: %v", i+1, err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if i%2 == 0 {
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: local"))
		}
	}
}

// Requests that nobody let in, or whose body does not come, hold no connection that somebody else needs; who is at work keeps his.
func TestD07_RequestsWithoutAnEndKeepNobodyOut(t *testing.T) {
	t.Parallel()
	for _, tokens := range []string{"", someTokens} {
		one, at := newTried(t)
		o := &Options{Stores: [][2]string{{"one", at}}, Connections: 20, AllowBreak: true}
		if tokens != "" {
			o.TokenFile = write(t, filepath.Join(t.TempDir(), "tokens"), tokens)
		}
		s := serves(t, o)
		watching := &http.Client{Transport: &http.Transport{}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/v1/watch?name=report", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer anas-token-0123456789")
		resp, err := watching.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		events := bufio.NewReader(resp.Body)
		sees := func(what string) {
			t.Helper()
			for {
				text, err := events.ReadString('\n')
				if err != nil {
					t.Fatalf("who is at work does not see %s: %v", what, err)
				}
				if strings.Contains(text, what) {
					return
				}
			}
		}
		sees(`"claims":[]`)
		for i := range 100 {
			path := []string{"/v1/break", "/login", "/"}[i%3]
			c, err := net.Dial("tcp", strings.TrimPrefix(s.at, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n{", path) // it may be closed already
		}
		fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for range 5 {
			if a := s.askBy(fresh, "GET", "/healthz", ""); a.status != 200 {
				t.Errorf("beside 100 requests without an end: %d", a.status)
			}
		}
		one.hold(t, "report")
		sees(`"state":"holds"`)
	}
}

// Attempts are counted by the address of whoever makes them; of IPv6, of which a machine has as many as it likes, by its network.
func TestAttemptsAreCountedByNetwork(t *testing.T) {
	t.Parallel()
	a := newAttempts(time.Now)
	for i := range 20 {
		if n := a.add(fmt.Sprintf("2001:db8::%x", i)); n != i+1 {
			t.Errorf("attempt %d of one network is the %d.", i+1, n)
		}
		if n := a.add(fmt.Sprintf("198.51.100.%d", i)); n != 1 {
			t.Errorf("198.51.100.%d has made %d attempts, want 1", i, n)
		}
	}
	if n := a.add("2001:db8:0:1::1"); n != 1 {
		t.Errorf("another network has made %d attempts, want 1", n)
	}
	s := &server{opts: &Options{BehindTLSProxy: true}}
	for said, want := range map[string]string{
		"203.0.113.9": "203.0.113.9", "10.0.0.1, 203.0.113.9": "203.0.113.9", "203.0.113.9:4711": "203.0.113.9", "[2001:db8::1]:4711": "2001:db8::1",
		"2001:db8::1": "2001:db8::1", "unknown": "192.0.2.1", "": "192.0.2.1", "203.0.113.9, ": "192.0.2.1",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil) // from 192.0.2.1
		r.Header.Set("X-Forwarded-For", said)
		if got := s.from(r); got != want {
			t.Errorf("X-Forwarded-For %q is from %s, want %s", said, got, want)
		}
	}
}
