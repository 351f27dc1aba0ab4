package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

// A client that opens connections and asks for nothing takes the place of others that ask for
// nothing, and of no other.
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

// flood opens connections, one in two of them with the first half of a request, until the test
// ends.
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

// Requests that nobody let in, or whose body does not come, hold no connection that somebody else
// needs; who is at work keeps his.
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
			_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n{", path)
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
