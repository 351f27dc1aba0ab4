package redislock_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Names are looked at together, but no longer by one script than the server should be held for:
// behind a long line the others follow by another.
func TestLinesOfManyClaims(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a, b := s.actor(t), s.actor(t)
	const claims = 600
	names := []string{"a", "b/long", "c", "d/long", "e", "f"}
	for _, name := range names {
		a.hold(mutex(name))
		if !strings.HasSuffix(name, "long") {
			continue
		}
		b.queue(mutex(name))
		_, line, records := sideKeys(name)
		server.MustDo(t, "EVAL", `local record = redis.call('HGET', KEYS[2], redis.call('LINDEX', KEYS[1], 0))
			for i = 1, ARGV[1] do
				local id = string.format('%022d', i)
				redis.call('RPUSH', KEYS[1], id)
				redis.call('HSET', KEYS[2], id, record)
			end`, "2", line, records, strconv.Itoa(claims-2))
	}
	lines, err := a.driver.Lines(t.Context(), "")
	if err != nil || len(lines) != len(names) {
		t.Fatalf("%d lines, %v: want %q", len(lines), err, names)
	}
	for i, l := range lines {
		want := 1
		if strings.HasSuffix(names[i], "long") {
			want = claims
		}
		if l.Name != names[i] || len(l.Claims) != want {
			t.Errorf("line %d is of %q with %d claims, want %q with %d", i, l.Name, len(l.Claims), names[i], want)
		}
	}
}

// What a list costs where very many names are free, and where very many are held.
// docs/backends/redis.md has the figures.
func TestWhatAListCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of thousands of names: make proof")
	}
	for _, l := range []redistest.Listing{{Free: 200_000, Held: 10, Scripts: 500}, {Held: 10_000, Waiting: 1000, Scripts: 150}} {
		t.Run(fmt.Sprintf("%d free, %d held, %d waiting", l.Free, l.Held, l.Waiting), func(t *testing.T) {
			server := servertest.Redis(t)
			l.Servers, l.URL, l.Counter = []*servertest.Server{server}, server.URL()+"?timeout=60s", `'il:{' .. n .. '}:fence:' .. n`
			l.Try(t)
		})
	}
}
