package redislock_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

func permit(name string, limit int) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Permit, Weight: 1, Limit: limit, Queue: true}
}

// Somebody takes the name its end, as by PERSIST or by a tool that moves keys without their times.
// Those who share hold it on, until their own ends.
func TestSharersHoldANameWithoutAnEnd(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a, b := s.actor(t), s.actor(t)
	for _, share := range []func(string) driver.Claim{reader, func(name string) driver.Claim { return permit(name, 1) }} {
		name := s.name("endless")
		mine, next := a.hold(share(name)), mutex(name)
		if mine.Kind == driver.Permit {
			next = share(name)
		}
		server.MustDo(t, "PERSIST", name)
		b.queue(next)
		if left, err := strconv.Atoi(server.MustDo(t, "PTTL", name)); err != nil || left < 1000 {
			t.Fatalf("the name lasts %d ms, %v: want what its holder has left", left, err)
		}
		if r, err := a.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Errorf("renewed: lost %v, %v; want nothing lost", r.Lost, err)
		}
		answer := b.waiting(next)
		a.release(mine)
		granted(t, answer)
		b.release(next)
	}
}

var callsPattern = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+)`)

// commands is how many commands the server has carried out since it began to count anew, those of
// scripts among them.
func commands(t *testing.T, server *servertest.Server) (n int) {
	t.Helper()
	text := server.MustDo(t, "INFO", "commandstats")
	for _, m := range callsPattern.FindAllStringSubmatch(text, -1) {
		if m[1] != "config|resetstat" && m[1] != "info" {
			calls, _ := strconv.Atoi(m[2])
			n += calls
		}
	}
	return n
}

// What a step of a claim that shares costs the server does not grow with how many share: those who
// are known to share are not gone through.
func TestOneOfManySharersCostsTheServerNoMore(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	const long = time.Hour // nobody's time is over meanwhile
	crowd, a, b := s.actorWith(t, long, redislock.Options{}), s.actorWith(t, long, redislock.Options{}), s.actorWith(t, long, redislock.Options{})
	costs := map[string]int{}
	for _, n := range []int{10, 1000} {
		name := s.name("sharers")
		for range n - 1 {
			crowd.hold(permit(name, n))
		}
		mine := a.hold(permit(name, n))
		next := permit(name, n)
		cost := func(what string, step func()) {
			t.Helper()
			server.MustDo(t, "CONFIG", "RESETSTAT")
			step()
			got := commands(t, server)
			if n == 10 {
				costs[what] = got
			} else if got > costs[what] {
				t.Errorf("%s costs %d commands among %d who share, and %d among 10", what, got, n, costs[what])
			}
		}
		renew := func(a *actor) func() {
			return func() {
				if r, err := a.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
					t.Fatalf("renew: %v, lost %v", err, r.Lost)
				}
			}
		}
		cost("a renewal", renew(a))
		cost("a release", func() { a.release(mine) })
		cost("an acquire", func() { mine = a.hold(permit(name, n)) })
		b.queue(next)
		cost("a waiter's renewal", renew(b))
		cost("a renewal before a waiter", renew(a))
		cost("a try", func() { a.queue(try(permit(name, n))) })
		answer := b.waiting(next)
		cost("a handoff", func() { a.release(mine); granted(t, answer) })
		b.release(next)
		if st := s.sound(t, name); len(st.held()) != n-1 {
			t.Fatalf("%d hold, want %d", len(st.held()), n-1)
		}
	}
	t.Logf("commands of the server: %v", costs)
}

// A claim that leaves a long line is sought from the end that is nearer to it, and so meets a
// second entry of it at the head or does not.
func TestWhoLeavesIsSoughtFromTheNearerEnd(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a := s.actor(t)
	name := s.name("sought")
	_, line, _ := sideKeys(name)
	now := func() string {
		return server.MustDo(t, "EVAL", "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)", "0")
	}
	var all []driver.Claim
	for i := range 20 {
		if i%5 == 0 { // who comes next is granted at a later millisecond of the server
			for then := now(); now() == then; {
			}
		}
		all = append(all, a.hold(permit(name, 20)))
	}
	waiter := permit(name, 20)
	a.queue(waiter)
	for _, c := range []struct {
		what  string
		claim driver.Claim
		late  bool
	}{{"waiting", waiter, true}, {"late", all[17], true}, {"early", all[2], false}} {
		server.MustDo(t, "LPUSH", line, c.claim.ID)
		if _, err := a.session.Release(t.Context(), c.claim); err != nil {
			t.Fatal(err)
		}
		if late := server.MustDo(t, "LINDEX", line, "0") == c.claim.ID; late != c.late {
			t.Errorf("the %s one was sought from the other end", c.what)
		}
		server.MustDo(t, "LREM", line, "0", c.claim.ID)
	}
}

// A client renews a thousand claims that share by ten scripts, each of which is short.
func TestManySharersOfOneClientAreRenewedTogether(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a := s.actorWith(t, time.Hour, redislock.Options{})
	one, other := s.name("renewed"), s.name("renewed")
	for range 600 {
		a.hold(permit(one, 600))
	}
	for range 400 {
		a.hold(reader(other))
	}
	for range 2 {
		server.MustDo(t, "CONFIG", "RESETSTAT")
		if r, err := a.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("renew: %v, lost %v", err, r.Lost)
		}
		if got := commands(t, server); got > 10*11 {
			t.Errorf("the renewal of 1,000 claims costs the server %d commands, want eleven for a hundred of them, or eight where they are of one name", got)
		}
	}
}

// A line and its records outlive the last who came by an hour. Whoever shares for longer than that
// comes by with every renewal.
func TestSharersOutliveTheirLine(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a := s.actor(t)
	name := s.name("hours")
	a.hold(reader(name))
	_, line, claims := sideKeys(name)
	for _, key := range []string{line, claims} {
		server.MustDo(t, "PEXPIRE", key, "600000") // as much as is left of the hour by now
	}
	if r, err := a.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Fatalf("renew: %v, lost %v", err, r.Lost)
	}
	for _, key := range []string{line, claims} {
		if left, _ := strconv.Atoi(server.MustDo(t, "PTTL", key)); left <= 600000 {
			t.Errorf("after a renewal %s still goes within %d ms: who shares would be forgotten while he holds", key, left)
		}
	}
}

// Who shares and dies is over in time, although the clock was set back by more than that after he
// was noted to share until later.
func TestSharersEndAlthoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	server := clocked(t)
	s := newStage(t, server)
	const short = time.Second
	a, b, c := s.actorWith(t, short, redislock.Options{}), s.actorWith(t, short, redislock.Options{}), s.actor(t)
	name := s.name("back")
	a.hold(reader(name))
	b.hold(reader(name))
	step(t, server, -time.Hour)
	for _, living := range []*actor{a, b} {
		if r, err := living.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("renew: %v, lost %v", err, r.Lost)
		}
	}
	writer := mutex(name)
	writer.Kind = driver.Write
	c.queue(writer)
	grantOf(t, "a writer follows readers who are not renewed any more", c.waiting(writer))
}

// The value over those who share has an end, or it would stay for ever when all of them have died.
func TestSharedNamesHaveAnEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, servertest.Redis(t))
	a, b, name := s.actor(t), s.actor(t), s.name("shared")
	one := a.hold(reader(name))
	s.sound(t, name)
	b.hold(reader(name))
	s.sound(t, name)
	a.release(one)
	s.sound(t, name)
}
