package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// A silence is a minority of masters that answers one process late or never.
type silence struct {
	name      string
	masters   int
	harm      func(w *wire.Wire) (heal func())
	of        []int
	opened    bool   // the process met all of them before
	idle      bool   // each call finds them with nothing to answer
	parameter string // of the URL; an answer is awaited for 90 s otherwise
}

// What happens to a master.
var (
	paused  = func(w *wire.Wire) func() { return w.Stall(wire.Both) }
	mute    = func(w *wire.Wire) func() { return w.Stall(wire.Replies) }
	refuses = func(w *wire.Wire) func() { w.Refuse(); w.Cut(); return func() {} }
	slow    = func(w *wire.Wire) func() { w.Delay(50*time.Millisecond, 0); return func() { w.Delay(0, 0) } }
)

var silences = []silence{
	{name: "one of three paused", masters: 3, harm: paused, of: []int{0}, opened: true},
	{name: "one of five mute", masters: 5, harm: mute, of: []int{2}, opened: true},
	{name: "one of five slow", masters: 5, harm: slow, of: []int{4}, opened: true},
	{name: "one of five slow, asked now and then", masters: 5, harm: slow, of: []int{1}, opened: true, idle: true},
	{name: "one of five paused from the start", masters: 5, harm: paused, of: []int{0}},
	{name: "two of five paused", masters: 5, harm: paused, of: []int{0, 3}, opened: true},
	{name: "two of five paused, with the usual timeout", masters: 5, harm: paused, of: []int{1, 2}, opened: true, parameter: "?node_timeout=500ms&max_ttl=5m"},
	{name: "two of five mute from the start", masters: 5, harm: mute, of: []int{1, 4}},
	{name: "two of five slow from the start", masters: 5, harm: slow, of: []int{0, 1}},
	{name: "two of five refuse", masters: 5, harm: refuses, of: []int{2, 3}, opened: true},
	{name: "two of five refuse from the start", masters: 5, harm: refuses, of: []int{0, 4}},
}

// With these a master may take longer for an answer than any test has patience: a session gives it
// a third of its TTL at most, and a connection that does not answer pings is closed.
const (
	endless    = "?node_timeout=90s&max_ttl=5m&keepalive=5m&timeout=90s"
	endlessTTL = 5 * time.Minute
)

// A side is two processes that reach the masters in the same way.
type side struct {
	one, two *process
	wires    []*wire.Wire
	there    []*servertest.Server // which it reaches when it is set up
}

type process struct {
	driver.Session
	d *redlock.Driver
}

// sides starts two sides, of which the second one's wires are harmed: before it opens, or when it
// is set up.
func (q silence) sides(t *testing.T, set []*servertest.Server, setUp func(side)) (healthy, harmed side, heal func()) {
	t.Helper()
	parameter, ttl := q.parameter, endlessTTL
	switch {
	case parameter == "":
		parameter = endless
	case testing.Short(): // a master that is well may take longer than half a second, too, on a machine that does other things
		parameter = strings.ReplaceAll(parameter, "500ms", "10s")
	}
	begin := func(harm func([]*wire.Wire), there []*servertest.Server) side {
		wires, all := make([]*wire.Wire, len(set)), make([]string, len(set))
		for i, s := range set {
			wires[i] = wire.New(t, s.Addr())
			all[i] = wires[i].Addr()
		}
		process := func() *process {
			d := open(t, urlOf(all)+parameter)
			return &process{session(t, d, ttl), d}
		}
		if !q.opened {
			harm(wires)
		}
		s := side{process(), process(), wires, there}
		setUp(s)
		if q.opened {
			harm(wires)
		}
		return s
	}
	var heals []func()
	there := set
	healthy = begin(func([]*wire.Wire) {}, there) // which founds the set
	if !q.opened {
		there = nil
		for i, s := range set {
			if !slices.Contains(q.of, i) {
				there = append(there, s)
			}
		}
	}
	harmed = begin(func(wires []*wire.Wire) {
		for _, i := range q.of {
			heals = append(heals, q.harm(wires[i]))
		}
	}, there)
	return healthy, harmed, func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// attempts is how often sides are compared until a machine that does other things lets them be.
const attempts = 3

// paces are how long two sides took for the same, in turn, so that both met the same machine.
// Whatever else the machine does makes some of them longer, and a wait makes all of them longer:
// what counts is the first quarter.
type paces struct{ with, without []time.Duration }

func (p *paces) judge(what string, q silence) error {
	quarter := func(all []time.Duration) time.Duration { slices.Sort(all); return all[len(all)/4] }
	with, without := quarter(p.with), quarter(p.without)
	if with > 3*without {
		return fmt.Errorf("%s takes %v, and %v with %s: want three times as long at most, it waits for masters that are silent", what, without, with, q.name)
	}
	return nil
}

// besides has two sides do the same again and again, one of them with silent masters. These are
// waited for in vain a few times, until they are known to be late, and not every time.
func besides(t *testing.T, what string, act func(t *testing.T, s side, name string) func() time.Duration) {
	t.Helper()
	const rounds = 20
	for _, q := range silences {
		t.Run(q.name, func(t *testing.T) {
			if testing.Short() && q.idle {
				t.Skip("answers that are late, again and again: make proof")
			}
			var acts []func() time.Duration
			_, harmed, heal := q.sides(t, startMasters(t, q.masters), func(s side) {
				acts = append(acts, act(t, s, fmt.Sprint("besides ", len(acts))))
			})
			defer heal()
			var err error
			for attempt := range attempts {
				var p paces
				for range rounds {
					p.without, p.with = append(p.without, acts[0]()), append(p.with, acts[1]())
					if q.idle {
						until(t, 30*time.Second, "answered by the slow master", func() bool {
							c := harmed.wires[q.of[0]].Count()
							return c.Requests.Held+c.Replies.Held == 0
						})
					}
				}
				for _, d := range []*redlock.Driver{harmed.one.d, harmed.two.d} {
					for _, i := range q.of {
						if vain := d.Vain()[i]; vain > int64(attempt+1)*rounds/3 {
							t.Fatalf("%s waited for a silent master in vain %d times in %d rounds with %s: want a few times, until it is late", what, vain, (attempt+1)*rounds, q.name)
						}
					}
				}
				if testing.Short() {
					return // it has returned; how soon is for make proof
				}
				if err = p.judge(what, q); err == nil {
					return
				}
			}
			t.Error(err)
		})
	}
}

// anew has two sides do something once, and others after them, so that each meets the silence for
// the first time.
func anew(t *testing.T, what string, opened bool, setUp func(s side, name string), act func(t *testing.T, s side, name string) time.Duration) {
	t.Helper()
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	for _, q := range silences {
		if q.opened != opened || q.idle {
			continue
		}
		t.Run(q.name, func(t *testing.T) {
			set := startMasters(t, q.masters)
			var err error
			for attempt := range attempts {
				var p paces
				for round := range rounds {
					var names []string
					healthy, harmed, heal := q.sides(t, set, func(s side) {
						name := fmt.Sprintf("anew %d.%d.%d", attempt, round, len(names))
						setUp(s, name)
						names = append(names, name)
					})
					defer heal()
					p.without, p.with = append(p.without, act(t, healthy, names[0])), append(p.with, act(t, harmed, names[1]))
				}
				if testing.Short() {
					return // it has returned; how soon is for make proof
				}
				if err = p.judge(what, q); err == nil {
					return
				}
			}
			t.Error(err)
		})
	}
}

// within runs f with a limit that only a call meets which waits for a master that is silent until
// the test ends.
func within(t *testing.T, what string, f func(ctx context.Context) error) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	began := time.Now()
	err := f(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		t.Fatalf("%s has not returned after %v: %v", what, time.Since(began), err)
	}
	return time.Since(began)
}

// Who gives up before a majority has answered hears how many had.
func TestWhoGivesUpHearsHowManyHadAnswered(t *testing.T) {
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+"?node_timeout=20s"), time.Minute)
	for _, server := range set[1:] {
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Resume() }()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, mutex("given up", true))
		done <- err
	}()
	until(t, 30*time.Second, "there at the master that answers", func() bool { return set[0].MustDo(t, "EXISTS", "given up") == "1" })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), " of 3 masters have answered so far") {
		t.Errorf("an acquire that was given up: %v, want %v and how many masters have answered", err, context.Canceled)
	}
}
