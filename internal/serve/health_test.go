package serve

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

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

// A store that cannot be reached does not keep the server from starting. It is down until it is
// there, and comes by itself.
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
