package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// idle has a master keep the counters of n names that nobody locks, drawn so long ago.
func idle(t *testing.T, s *servertest.Server, prefix string, n int, ago time.Duration) {
	t.Helper()
	s.MustDo(t, "EVAL", `local t = redis.call('TIME')
		for i = 1, ARGV[2] do
			redis.call('SET', 'il:{' .. ARGV[1] .. i .. '}:qfence:' .. ARGV[1] .. i, string.format('%.0f', (t[1] * 1000000 - ARGV[3]) / 64 * 64 - i * 64))
		end`, "0", prefix, strconv.Itoa(n), strconv.FormatInt(ago.Microseconds(), 10))
}

// A list of what stands costs by what stands, and not by all names that ever were locked.
func TestLines_CostByWhatStands(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, time.Minute)
	for _, server := range set {
		idle(t, server, "old/", 5000, time.Hour)
	}
	for _, name := range []string{"held", "left"} {
		within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s, mutex(name, true)); return err })
		everywhere(t, set, name)
	}
	queues := mutex("left", true)
	until(t, 30*time.Second, "in line", func() bool { // also where the subscription is confirmed later
		within(t, "a claim that queues", func(ctx context.Context) error { _, err := s.Acquire(ctx, queues); return err })
		return !slices.ContainsFunc(set, func(server *servertest.Server) bool { return server.MustDo(t, "ZCARD", "il:{left}:qline:left") != "1" })
	})
	for _, server := range set {
		server.MustDo(t, "DEL", "left") // whose holder has gone without a word
		server.MustDo(t, "RPUSH", "data", "somebody's")
		server.MustDo(t, "SET", "il:{data}:qfence:data", "64")
	}
	before := scripts(t, set[0])
	lines, err := d.Lines(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range lines {
		names = append(names, l.Name)
	}
	if want := []string{"data", "held", "left"}; !slices.Equal(names, want) {
		t.Errorf("%q stand, want %q", names, want)
	}
	if n := scripts(t, set[0]) - before; n > 100 { // 11 for 5,003 names, 3 for those that stand, and what renews meanwhile
		t.Errorf("a master was asked %d times for 5,003 names, of which 3 are of interest", n)
	}
}

// The lines of a list are looked at many together, so that a list of many takes few turns of the
// wire.
func TestLines_AreLookedAtTogether(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, "?node_timeout=90s")
	const lines = 60
	for _, server := range set {
		for i := range lines {
			name := fmt.Sprintf("theirs/%02d", i)
			server.MustDo(t, "MSET", name, "another program's", "il:{"+name+"}:qfence:"+name, "64")
		}
	}
	for _, w := range wires {
		w.Delay(20*time.Millisecond, 0) // in which the next are asked for
	}
	before := wires[0].Count().Requests.Packets
	within(t, "a list", func(ctx context.Context) error {
		all, err := d.Lines(ctx, "")
		for i, l := range all {
			if want := fmt.Sprintf("theirs/%02d", i); l.Name != want || len(l.Claims) != 1 {
				t.Errorf("line %d is %+v, want one claim of %s", i, l, want)
			}
		}
		if len(all) != lines {
			t.Errorf("%d lines, want %d", len(all), lines)
		}
		return err
	})
	if n := wires[0].Count().Requests.Packets - before; n > lines/2 {
		t.Errorf("a list of %d lines took a master %d packets, want a few", lines, n)
	}
}

// A list of what stands waits for no master that falls silent.
func TestLines_DoNotWaitForASilentMaster(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, "?node_timeout=90s")
	s := session(t, d, time.Minute)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s, mutex("held", true)); return err })
	everywhere(t, set, "held")
	defer wires[1].Stall(wire.Both)()
	within(t, "a list", func(ctx context.Context) error {
		lines, err := d.Lines(ctx, "")
		if err == nil && (len(lines) != 1 || lines[0].Name != "held") {
			t.Errorf("%+v stand, want the one that is held", lines)
		}
		return err
	})
}

// What is kept of names that nobody locks goes when it is old, and tokens go on above it.
func TestPrune(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, time.Minute)
	counter := func(server *servertest.Server, name string) int64 {
		t.Helper()
		n, _ := strconv.ParseInt(server.MustDo(t, "GET", "il:{"+name+"}:qfence:"+name), 10, 64)
		return n
	}
	held := mutex("held1", true)
	within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s, held); return err })
	everywhere(t, set, "held1")
	var highs []int64 // by master: one may have been filled in a second, and the next one in another
	for _, server := range set {
		idle(t, server, "old", 250, 48*time.Hour)
		idle(t, server, "kept", 2, time.Hour)
		idle(t, server, "held", 1, 48*time.Hour)
		server.MustDo(t, "SET", "il:{damaged}:qfence:damaged", "no number")
		highs = append(highs, counter(server, "old1"))
	}
	prune := func(prefix string, want int) {
		t.Helper()
		if n, err := d.Prune(t.Context(), prefix, 24*time.Hour); n != want || err != nil {
			t.Errorf("pruned %d names that begin with %q, %v, want %d", n, prefix, err, want)
		}
	}
	prune("kept", 0)
	prune("old2", 62)
	prune("", 188)
	prune("", 0)
	if _, err := d.Prune(t.Context(), "", -time.Hour); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("pruned what is to come: %v, want %v", err, driver.ErrRefused)
	}
	for i, server := range set {
		until(t, 30*time.Second, fmt.Sprintf("pruned on master %d", i+1), func() bool { return counter(server, "old1") == 0 && counter(server, "old250") == 0 })
		for _, name := range []string{"kept1", "kept2", "held1"} {
			if counter(server, name) == 0 {
				t.Errorf("master %d has lost the counter of %s", i+1, name)
			}
		}
		if server.MustDo(t, "EXISTS", "il:{damaged}:qfence:damaged") != "1" {
			t.Errorf("master %d has lost what nobody can read", i+1)
		}
		floor, _ := strconv.ParseInt(server.MustDo(t, "GET", "il:{redlock}:floor"), 10, 64)
		if floor < highs[i] || floor%64 != 0 {
			t.Errorf("master %d draws above %d, want it above %d, which was pruned", i+1, floor, highs[i])
		}
	}
}

// What a list costs where very many names are free, and where very many are held.
// docs/backends/redlock.md has the figures.
func TestWhatAListCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of thousands of names: make proof")
	}
	for _, l := range []redistest.Listing{{Free: 200_000, Held: 10, Scripts: 500}, {Held: 10_000, Waiting: 1000, Scripts: 10_100}} {
		t.Run(fmt.Sprintf("%d free, %d held, %d waiting", l.Free, l.Held, l.Waiting), func(t *testing.T) {
			l.Servers, l.Counter = startMasters(t, 3), `'il:{' .. n .. '}:qfence:' .. n`
			l.URL = urlOf(addrs(l.Servers)) + "?max_ttl=1h&node_timeout=60s&timeout=60s"
			l.Try(t)
		})
	}
}
