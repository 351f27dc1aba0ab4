package redislock_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// No key stays for ever of a name that was locked, by whatever kind of claim; with KeepCounters
// below 0 the counters do.
func TestNothingStaysForEver(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	const kept = 3 * time.Hour
	for _, o := range []redislock.Options{{KeepCounters: kept}, {KeepCounters: -1}} {
		server.MustDo(t, "FLUSHALL")
		a, b := s.actorWith(t, age, o), s.actorWith(t, age, o)
		check := func(when string) {
			t.Helper()
			for _, key := range keysAt(t, server) {
				left := number(t, server, "PTTL", key)
				counter := fenceKey.MatchString(key)
				switch {
				case counter && o.KeepCounters < 0 && left != -1:
					t.Errorf("%s: the counter %q goes in %d ms, want it to stay", when, key, left)
				case counter && o.KeepCounters > 0 && (left <= 0 || left > int(kept.Milliseconds())):
					t.Errorf("%s: the counter %q goes in %d ms, want it within %v", when, key, left, kept)
				case !counter && left <= 0:
					t.Errorf("%s: %q goes in %d ms, want it to go", when, key, left)
				}
			}
		}
		for what, kind := range map[string]func(string) driver.Claim{"mutex": mutex, "reader": reader, "permit": func(name string) driver.Claim { return permit(name, 1) }} {
			name := s.name("kept-" + what)
			one := a.hold(kind(name))
			check(what + " held")
			a.release(one)
			check(what + " released")
			one = a.hold(kind(name))
			next := mutex(name)
			if what == "permit" {
				next = permit(name, 1)
			}
			b.queue(next)
			check(what + " waited for")
			answer := b.waiting(next)
			a.release(one)
			granted(t, answer)
			check(what + " handed over")
			last := mutex(name) // the usual turn
			if what == "permit" {
				last = permit(name, 1)
			}
			a.queue(last)
			answer = a.waiting(last)
			b.release(next)
			granted(t, answer)
			a.release(last)
			check(what + " over")
		}
	}
	if _, err := redislock.New(t.Context(), redistest.Connect(t, redistest.NewProxies(t), server.URL()), &redislock.Options{KeepCounters: time.Minute}); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("counters kept for a minute: %v, want that refused", err)
	}
}

var fenceKey = regexp.MustCompile(`:fence:`)

// keysAt returns all keys of a server.
func keysAt(t *testing.T, server *servertest.Server) []string {
	t.Helper()
	return regexp.MustCompile(`\S+`).FindAllString(server.MustDo(t, "KEYS", "*"), -1)
}

// A counter that is ahead of the server's clock, which was set back, outlives the time until the
// clock has caught up with it: the next token is larger whenever somebody comes.
func TestCounterAheadOfTheClockStaysLonger(t *testing.T) {
	t.Parallel()
	server := clocked(t)
	s := newStage(t, server)
	const kept, back = time.Hour, 24 * time.Hour
	a, b := s.actorWith(t, age, redislock.Options{KeepCounters: kept}), s.actorWith(t, age, redislock.Options{KeepCounters: kept})
	name := s.name("ahead")
	counter, _, _ := sideKeys(name)
	a.release(a.hold(mutex(name)))
	stays := func(when string) {
		t.Helper()
		if left := time.Duration(number(t, server, "PTTL", counter)) * time.Millisecond; left < back {
			t.Errorf("%s: the counter goes in %v, when the clock is still behind it", when, left)
		}
	}
	step(t, server, -back)
	stays("set back")
	// A grant gives the counter its time anew when it passes into another eighth of that.
	eighth := (kept / 8).Microseconds()
	edge := (time.Now().UnixMicro()/eighth + 2) * eighth
	server.MustDo(t, "SET", counter, strconv.FormatInt(edge-64, 10), "PX", "60000")
	one, next := a.hold(mutex(name)), mutex(name)
	stays("taken")
	b.queue(next)
	answer := b.waiting(next)
	server.MustDo(t, "SET", counter, strconv.FormatInt(edge+eighth-63, 10), "PX", "60000")
	a.release(one)
	granted(t, answer)
	stays("handed over")
	b.release(next)
}

// A counter that is used is given its time anew, though not by each grant.
func TestCounterInUseStays(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	const kept = 8 * time.Hour
	a, b := s.actorWith(t, age, redislock.Options{KeepCounters: kept}), s.actorWith(t, age, redislock.Options{KeepCounters: kept})
	for _, how := range []string{"taken", "shared before", "handed over"} {
		name := s.name("used")
		counter, _, _ := sideKeys(name)
		a.release(a.hold(mutex(name)))
		use := func() {
			switch how {
			case "taken":
				a.release(a.hold(mutex(name)))
			case "shared before": // the long script draws
				one, next := a.hold(reader(name)), mutex(name)
				b.queue(next)
				answer := b.waiting(next)
				a.release(one)
				granted(t, answer)
				b.release(next)
			default:
				one, next, last := a.hold(mutex(name)), mutex(name), mutex(name)
				b.queue(next)
				answer := b.waiting(next)
				if _, _, err := a.session.(driver.Requeuer).Requeue(t.Context(), one, last); err != nil {
					t.Fatal(err)
				}
				granted(t, answer)
				answer = a.waiting(last)
				b.release(next)
				granted(t, answer)
				a.release(last)
			}
		}
		use()
		server.MustDo(t, "SET", counter, strconv.FormatInt(time.Now().Add(-kept/4).UnixMicro()/64*64, 10), "PX", "60000") // the last grant was so long ago
		use()
		if left := number(t, server, "PTTL", counter); left <= 60000 {
			t.Errorf("%s: the counter goes in %d ms although it is used", how, left)
		}
	}
}

// Who holds a name for long keeps its counter alive, and with it the token that is shown and broken
// by.
func TestWhoHoldsKeepsItsCounter(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a := s.actorWith(t, age, redislock.Options{KeepCounters: time.Hour})
	name := s.name("held")
	mine := a.hold(mutex(name))
	counter, _, _ := sideKeys(name)
	server.MustDo(t, "PEXPIRE", counter, "60000") // as much as is left of it by now
	redislock.Age(a.session, time.Hour)
	for range 2 {
		if r, err := a.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("renew: %v, lost %v", err, r.Lost)
		}
	}
	if left := number(t, server, "PTTL", counter); left <= 60000 {
		t.Errorf("the counter goes in %d ms while somebody holds", left)
	}
	if got := a.acquire(mine); !got.Held {
		t.Errorf("%+v, want it held", got)
	}
	a.release(mine)
}

// To list who holds and who waits costs by that, and little for each name that is free but has a
// counter still.
func TestLinesCostByWhatStands(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a, b := s.actor(t), s.actor(t)
	const old = 5000
	server.MustDo(t, "EVAL", `for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'il:{old/' .. i .. '}:fence:old/' .. i, i * 64) end`, "0", strconv.Itoa(old))
	a.hold(mutex("stands/alone"))
	a.hold(reader("stands/shared"))
	gone := "stands/gone" // its holder is, without a word, and somebody waits
	a.hold(mutex(gone))
	b.queue(mutex(gone))
	server.MustDo(t, "DEL", gone)
	server.MustDo(t, "SET", "stands/theirs", "another program's", "PX", "600000")
	server.MustDo(t, "SET", "il:{stands/theirs}:fence:stands/theirs", "64")
	want := []string{"stands/alone", gone, "stands/shared", "stands/theirs"}
	calls := map[string]int{}
	server.MustDo(t, "CONFIG", "RESETSTAT")
	lines, err := a.driver.Lines(context.Background(), "")
	if err != nil || len(lines) != len(want) {
		t.Fatalf("%d lines, %v: want %q", len(lines), err, want)
	}
	for i, l := range lines {
		if l.Name != want[i] || len(l.Claims) != 1 {
			t.Errorf("line %d is %+v, want one claim of %q", i, l, want[i])
		}
	}
	for _, m := range callsPattern.FindAllStringSubmatch(server.MustDo(t, "INFO", "commandstats"), -1) {
		calls[m[1]], _ = strconv.Atoi(m[2])
	}
	// A script for 500 names, perhaps sent twice the first time, and one for those that stand.
	if n := calls["eval"] + calls["evalsha"]; n > 2*(old/500+2) {
		t.Errorf("%d lines among %d names cost %d scripts", len(want), old, n)
	}
	if total := commands(t, server); total > old/10 {
		t.Errorf("%d lines among %d names cost the server %d commands, want one for ten names at most", len(want), old, total)
	}
}

// What is pruned is the counters of names that are free and were last granted long ago, and nothing
// else.
func TestPrune(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a, b := s.actor(t), s.actor(t)
	age := func(name string, d time.Duration) (key string) {
		key, _, _ = sideKeys(name)
		old := number(t, server, "GET", key)%64 + int(time.Now().Add(-d).UnixMicro()/64*64)
		server.MustDo(t, "SET", key, strconv.Itoa(old))
		return key
	}
	const week = 7 * 24 * time.Hour
	free, recent, held, waited, damaged, other := s.name("free"), s.name("recent"), s.name("held"), s.name("waited"), s.name("damaged"), "other/"+s.name("free")
	tokens := map[string]uint64{}
	for _, name := range []string{free, recent, damaged, other} {
		one := mutex(name)
		tokens[name] = a.acquire(one).Fence
		a.release(one)
	}
	one, share, next := a.hold(mutex(held)), a.hold(reader(waited)), mutex(waited)
	b.queue(next)
	apart := age(other, 2*week)
	if n, err := a.driver.Prune(t.Context(), "free", week); n != 0 || err != nil { // a prefix of nothing that is old
		t.Errorf("pruned %d, %v; want 0", n, err)
	}
	gone := []string{age(free, 2*week), apart}
	stays := []string{age(recent, week/2), age(held, 2*week), age(waited, 2*week), age(damaged, 0)}
	server.MustDo(t, "SET", stays[3], "abc")
	for _, want := range []int{2, 0} {
		if n, err := a.driver.Prune(t.Context(), "", week); n != want || err != nil {
			t.Errorf("pruned %d, %v; want %d", n, err, want)
		}
	}
	for _, key := range stays {
		if server.MustDo(t, "EXISTS", key) != "1" {
			t.Errorf("%q was pruned", key)
		}
	}
	for _, key := range gone {
		if server.MustDo(t, "EXISTS", key) != "0" {
			t.Errorf("%q was not pruned", key)
		}
	}
	again := mutex(free)
	if g := a.acquire(again); g.Fence <= tokens[free] {
		t.Errorf("token %d after %d", g.Fence, tokens[free])
	}
	if _, err := a.driver.Prune(t.Context(), "", time.Minute); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("pruned what was idle for a minute: %v, want that refused", err)
	}
	a.release(again)
	a.release(one)
	answer := b.waiting(next)
	a.release(share)
	granted(t, answer)
	b.release(next)
}
