package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every route by every credential: who may do what, with --allow-break and without.
func TestRoutesAndScopes(t *testing.T) {
	t.Parallel()
	const tokens = `token=all-token-0123456789 name=all read=* break=*
token=jobs-token-0123456789 name=jobs read=jobs/ break=jobs/
token=reads-token-0123456789 name=reads read=*
token=breaks-token-0123456789 name=breaks break=*
token=metrics-token-0123456789 name=metrics
token=late-token-0123456789 name=late read=* break=* expires=2020-01-01
`
	principals := []string{"all", "jobs", "reads", "breaks", "metrics", "late", ""}
	// What each is answered by, in this order, where no name is asked for or it is one below jobs/;
	// and where it is one below coupons/.
	const name = "NAME"
	anybody := []int{200, 200, 200, 200, 200, 200, 200}
	known := []int{200, 200, 200, 200, 200, 401, 401}
	read := []int{200, 200, 200, 403, 403, 401, 401}
	others := []int{200, 403, 200, 403, 403, 401, 401}
	breaks := []int{409, 409, 403, 409, 403, 401, 401}
	breaksOthers := []int{409, 403, 403, 409, 403, 401, 401}
	never := []int{403, 403, 403, 403, 403, 401, 401}
	form := "store=one&id=AAAAAAAAAAAAAAAAAAAAAA&fence=1&name="
	for _, allow := range []bool{true, false} {
		one, at := newTried(t)
		one.hold(t, "jobs/a")
		one.hold(t, "coupons/a")
		s := serves(t, &Options{Stores: [][2]string{{"one", at}}, AllowBreak: allow, TokenFile: write(t, filepath.Join(t.TempDir(), "tokens"), tokens)})
		id := map[string]string{}
		for _, n := range []string{"jobs/a", "coupons/a"} {
			l, err := one.Driver.Line(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			id[n] = l.Claims[0].PublicID
		}
		seen := map[string]bool{}
		all := []string{"Authorization", "Bearer all-token-0123456789"}
		loaded := regexp.MustCompile(`"(static/[^"]+)"`).FindStringSubmatch(s.ask("GET", "/", "", all...).body)
		if loaded == nil {
			t.Fatal("the page loads nothing")
		}
		for _, c := range []struct {
			method, path, body string
			want, others       []int
		}{
			{"GET", "/healthz", "", anybody, nil},
			{"GET", "/readyz", "", anybody, nil},
			{"GET", "/login", "", anybody, nil},
			{"GET", "/login.css", "", anybody, nil},
			{"GET", "/login.svg", "", anybody, nil},
			{"POST", "/login", "token=&next=/", []int{401, 401, 401, 401, 401, 401, 401}, nil},
			{"POST", "/logout", "", []int{303, 303, 303, 303, 303, 303, 303}, nil},
			{"GET", "/metrics", "", known, nil},
			{"GET", "/" + loaded[1], "", known, nil},
			{"GET", "/", "", read, nil},
			{"GET", "/contention", "", read, nil},
			{"GET", "/stores", "", read, nil},
			{"GET", "/line?store=one&name=" + name, "", read, others},
			{"GET", "/v1/stores", "", read, nil},
			{"GET", "/v1/lines", "", read, nil},
			{"GET", "/v1/line?name=" + name, "", read, others},
			{"GET", "/v1/history?name=" + name, "", read, others},
			{"GET", "/v1/openapi.json", "", known, nil},
			{"HEAD", "/v1/watch?name=" + name, "", read, others},
			{"HEAD", "/live?page=line&name=" + name, "", read, others},
			{"POST", "/v1/break", `{"name":"` + name + `","id":"AAAAAAAAAAAAAAAAAAAAAA","fence":"1"}`, breaks, breaksOthers},
			{"POST", "/break", form + name, breaks, breaksOthers},
			{"GET", "/break?id=AAAAAAAAAAAAAAAAAAAAAA&fence=1&name=" + name, "", []int{409, 409, 403, 403, 403, 401, 401}, []int{409, 403, 403, 403, 403, 401, 401}},
		} {
			path, _, _ := strings.Cut(c.path, "?")
			seen[strings.Replace(c.method, "HEAD", "GET", 1)+" "+path] = true
			for _, prefix := range []string{"jobs/", "coupons/"} {
				n := prefix + "a"
				want := c.want
				if prefix == "coupons/" {
					if c.others == nil {
						continue
					}
					want = c.others
				}
				if !allow && strings.HasSuffix(path, "/break") {
					want = never
				}
				kind := "application/x-www-form-urlencoded"
				if strings.HasPrefix(c.body, "{") {
					kind = "application/json"
				}
				for i, who := range principals {
					headers := []string{"Content-Type", kind, "Sec-Fetch-Site", "same-origin"}
					if who != "" {
						headers = append(headers, "Authorization", "Bearer "+who+"-token-0123456789")
					}
					a := s.ask(c.method, strings.ReplaceAll(c.path, name, url.QueryEscape(n)), strings.ReplaceAll(c.body, name, n), headers...)
					if a.status != want[i] {
						t.Errorf("breaks allowed: %v: %s %s of %s by %q: %d, want %d\n%.300s", allow, c.method, c.path, n, who, a.status, want[i], a.body)
					}
				}
			}
		}
		for path := range routes {
			for method := range strings.SplitSeq(s.ask("BREW", path, "", all...).header.Get("Allow"), ", ") {
				if method != http.MethodHead && !seen[method+" "+path] {
					t.Errorf("no row for %q of %s", method, path)
				}
			}
		}
		for n, want := range id { // nothing of that was the claim that stands there
			if l, err := one.Driver.Line(t.Context(), n); err != nil || len(l.Claims) != 1 || l.Claims[0].Broken || l.Claims[0].PublicID != want {
				t.Errorf("%s: %+v, %v", n, l, err)
			}
		}
	}
}

// A break is done once, told to the log with who did it, and counted.
func TestBreakIsInTheLog(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	lease := one.hold(t, "coupons/42")
	s := serves(t, &Options{
		Stores: [][2]string{{"one", at}}, AllowBreak: true, BehindTLSProxy: true, TokenFile: write(t, filepath.Join(t.TempDir(), "tokens"), someTokens+"token=lates-token-0123456789 name=late break=* expires=2020-01-01\n"),
	})
	l, err := one.Driver.Line(t.Context(), "coupons/42")
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"store": "one", "name": l.Name, "id": l.Claims[0].PublicID, "fence": fmt.Sprint(l.Claims[0].Fence), "reason": "it hangs"})
	if err != nil {
		t.Fatal(err)
	}
	a := s.ask("POST", "/v1/break", string(body), "Content-Type", "application/json", "Authorization", "Bearer anas-token-0123456789", "X-Forwarded-For", "6.6.6.6, 203.0.113.9")
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	<-lease.Context().Done()
	lines := 0
	for line := range strings.Lines(s.log.String()) {
		if !strings.Contains(line, "web: break") {
			continue
		}
		lines++
		for _, want := range []string{"level=INFO", "by=ana", "from=203.0.113.9", "store=one", "name=coupons/42", "id=" + l.Claims[0].PublicID, "now=false", `reason="it hangs"`, "outcome=marked"} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in %s", want, line)
			}
		}
		for _, field := range fieldsOnThePage(t) {
			if !strings.Contains(line, " "+field+"=") && field != "err" {
				t.Errorf("docs/serve.md has the field %s, which is not in %s", field, line)
			}
		}
	}
	if lines != 1 {
		t.Errorf("%d lines of the log:\n%s", lines, s.log)
	}
	s.ask("POST", "/v1/break", string(body), "Content-Type", "application/json", "Authorization", "Bearer lates-token-0123456789", "X-Forwarded-For", "203.0.113.10")
	s.ask("POST", "/v1/break", string(body), "Content-Type", "application/json", "Authorization", "Bearer nobodys-token-0123", "X-Forwarded-For", "203.0.113.11")
	s.ask("POST", "/v1/break", string(body), "Content-Type", "application/json", "Authorization", "Basic nobodys-token-0123", "X-Forwarded-For", "203.0.113.11")
	s.ask("GET", "/line?name=m", "", "Authorization", "Bearer lates-token-0123456789")
	s.ask("POST", "/v1/break", string(body), "Content-Type", "application/json")
	if n := strings.Count(s.log.String(), `msg="interlock web: break" by=late from=203.0.113.10 outcome=unauthenticated err="the token of late expired`); n != 1 || strings.Count(s.log.String(), "web: break") != 3 {
		t.Errorf("one who has tried it with a token that is over has %d lines in the log:\n%s", n, s.log)
	}
	if n := strings.Count(s.log.String(), `msg="interlock web: break" from=203.0.113.11 outcome=unauthenticated err="the token is not known here"`); n != 1 {
		t.Errorf("one who has tried it with a token that nobody has has %d lines in the log:\n%s", n, s.log)
	}
	if s.log.has("anas-token") || s.log.has("nobodys-token") || s.log.has("lates-token") {
		t.Errorf("the log has the token:\n%s", s.log)
	}
	if a := s.ask("GET", "/metrics", "", "Authorization", "Bearer anas-token-0123456789"); !strings.Contains(a.body, `interlock_breaks_total{store="one",mode="marked"} 1`) {
		t.Errorf("it is not counted:\n%s", a.body)
	}
}

// fieldsOnThePage are those of a break's line in the log, as docs/serve.md has them.
func fieldsOnThePage(t *testing.T) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| field | says |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			all = append(all, m[1])
		}
	}
	if len(all) != 11 {
		t.Errorf("docs/serve.md has the fields %q", all)
	}
	return all
}

// asks makes a request in the background, and says how it went: nil if it was answered whole, by
// 200.
func (r *running) asks(path string) <-chan error {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.at+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	went := make(chan error, 1)
	go func() {
		resp, err := plainClient.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
		}
		went <- err
	}()
	return went
}

// streams opens a stream and returns what reads the next event of it: its name, or why there is
// none.
func (r *running) streams(c *http.Client, path string) (status int, next func() (string, error)) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.at+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = resp.Body.Close() })
	if want := 1 + strings.Count(r.at, "https:"); resp.ProtoMajor != want {
		r.Errorf("%s is spoken, want HTTP/%d", resp.Proto, want)
	}
	in := bufio.NewReader(resp.Body)
	return resp.StatusCode, func() (string, error) {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return "", err
			}
			if event, ok := strings.CutPrefix(line, "event: "); ok {
				return strings.TrimSpace(event), nil
			}
			if strings.HasPrefix(line, ": ping") {
				return "ping", nil
			}
		}
	}
}

// A stream tells of changes, over HTTP/1.1 and over HTTP/2; there are no more than there may be;
// and they end with the server's readiness.
func TestStreams(t *testing.T) {
	t.Parallel()
	ca := makeCA(t, t.TempDir())
	for _, secure := range []bool{false, true} {
		one, at := newTried(t)
		o := &Options{Stores: [][2]string{{"one", at}}, Streams: 3, Drain: time.Minute}
		tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: ca.client(t, "")}
		t.Cleanup(tr.CloseIdleConnections)
		if secure {
			o.TLSCert, o.TLSKey = ca.serverCert, ca.serverKey
		}
		s, c := serves(t, o), &http.Client{Transport: tr}
		var nexts []func() (string, error)
		for range 2 { // one principal may have half of them
			status, next := s.streams(c, "/v1/watch?name=report")
			if event, err := next(); status != 200 || err != nil || event != "line" {
				t.Fatalf("TLS %v: %d, %q, %v", secure, status, event, err)
			}
			nexts = append(nexts, next)
		}
		if status, _ := s.streams(c, "/v1/watch?name=report"); status != 429 {
			t.Fatalf("TLS %v: a stream too many: %d", secure, status)
		}
		text := s.askBy(c, "GET", "/metrics", "").body
		for _, want := range []string{"interlock_http_streams 2\n", `interlock_http_dropped_total{what="stream"} 1`} {
			if !strings.Contains(text, want) {
				t.Errorf("TLS %v: no %s in\n%s", secure, want, text)
			}
		}
		one.hold(t, "report")
		for _, next := range nexts {
			if event, err := next(); err != nil || event != "line" {
				t.Errorf("TLS %v: when it is held: %q, %v", secure, event, err)
			}
		}
		s.end()
		for _, next := range nexts {
			event, err := next()
			for ; err == nil; event, err = next() { // what was under way
				if event == "" {
					t.Error("no event")
				}
			}
		}
		if a := s.askBy(c, "GET", "/readyz", ""); a.status != 503 || !strings.Contains(a.body, "draining") {
			t.Errorf("TLS %v: while it ends: %d %s", secure, a.status, a.body)
		}
		if a := s.askBy(c, "GET", "/v1/line?name=report", ""); a.status != 200 {
			t.Errorf("TLS %v: while it ends what is asked is answered by %d %s", secure, a.status, a.body)
		}
	}
}

// A stream outlives the time that an answer has, and that of one message, though nothing is said
// for long: the list of a slow store is read seldom.
func TestStreamsLast(t *testing.T) {
	if testing.Short() {
		t.Skip("longer than an answer may take")
	}
	t.Parallel()
	ca := makeCA(t, t.TempDir())
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			t.Parallel()
			one, at := newTried(t)
			one.slow = 2 * time.Second
			o := &Options{Stores: [][2]string{{"one", at}}}
			tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: ca.client(t, "")}
			t.Cleanup(tr.CloseIdleConnections)
			if secure {
				o.TLSCert, o.TLSKey = ca.serverCert, ca.serverKey
			}
			s := serves(t, o)
			began := time.Now()
			status, next := s.streams(&http.Client{Transport: tr}, "/v1/watch")
			if status != 200 {
				t.Fatal(status)
			}
			for time.Since(began) < answerTime+10*time.Second {
				if event, err := next(); err != nil {
					t.Fatalf("after %v: %q, %v", time.Since(began), event, err)
				}
			}
		})
	}
}

// A viewer who reads nothing costs nobody else anything.
func TestD07_SlowReaders(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}, Streams: 100, Logger: slog.New(slog.DiscardHandler)})
	for range 20 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.at, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.(*net.TCPConn).SetReadBuffer(1)
		if _, err := c.Write([]byte("GET /v1/watch?name=report HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	_, next := s.streams(plainClient, "/v1/watch?name=report")
	if event, err := next(); err != nil || event != "line" {
		t.Fatalf("%q, %v", event, err)
	}
	for range 3 {
		lease := one.hold(t, "report")
		if event, err := next(); err != nil || event != "line" {
			t.Errorf("%q, %v", event, err)
		}
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
		if event, err := next(); err != nil || event != "line" {
			t.Errorf("%q, %v", event, err)
		}
	}
}

// SIGTERM: not ready, streams end, what is under way is answered, and then nobody listens.
func TestEnd(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}, Drain: time.Minute})
	second := &http.Client{Transport: &http.Transport{}}
	s.askBy(second, "GET", "/healthz", "") // a connection that is kept
	gate := make(chan struct{})
	one.set(func() { one.gate = gate })
	underWay := s.asks("/v1/line?store=one&name=a")
	<-one.asked

	s.end()
	eventually(t, "not ready", func() bool { return strings.Contains(s.askBy(second, "GET", "/readyz", "").body, "draining") })
	one.set(func() { one.gate = nil })
	close(gate)
	if err := <-underWay; err != nil {
		t.Errorf("what was under way: %v", err)
	}
	select {
	case err := <-s.ended:
		t.Fatalf("ended before its time, by %v", err)
	default:
	}
}

// Without a time to drain the end waits for what is under way, and for nothing else.
func TestEndAtOnce(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}})
	gate := make(chan struct{})
	one.set(func() { one.gate = gate })
	underWay := s.asks("/v1/line?store=one&name=a")
	<-one.asked
	s.end()
	eventually(t, "nobody listens", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.at, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(gate)
	if err := <-underWay; err != nil {
		t.Errorf("what was under way: %v", err)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("ended by %v", err)
	}
}
