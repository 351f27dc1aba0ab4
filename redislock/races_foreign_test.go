package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// What other programs run to extend and to release what they hold, if they still do.
var (
	foreignExtend  = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	foreignRelease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

// Another program holds, and ours do all they can do meanwhile. Its value and its time stay as they
// are, and it can extend and release.
func foreignValueIsLeftAlone(s scene) {
	t := s.T
	for _, value := range []string{
		"1", strings.Repeat("\x00\xff", 10), "0b5b1c3e-1f0e-4f8e-9b43-6f1d1b9cba4d/with-more-than-26-letters-", "il1",
		"il:AbCdEfGhIjKlMnOpQrStUv-{}",
	} {
		a, b := s.actor(t), s.actor(t)
		name := s.name("foreign")
		if set := s.raw.SetNX(t.Context(), name, value, 10*age).Val(); !set {
			t.Fatal("the name is not free")
		}
		untouched := func(what string) {
			t.Helper()
			if stored := s.sound(t, name).value; stored != value {
				t.Fatalf("%s: the value is %q, want %q", what, stored, value)
			}
			if left := s.raw.PTTL(t.Context(), name).Val(); left < 8*age {
				t.Fatalf("%s: the value has %v left, want about %v", what, left, 10*age)
			}
		}
		if g := a.acquire(try(mutex(name))); g.Held || g.Holder == nil || !g.Holder.Foreign {
			t.Fatalf("a try while another program holds: %+v", g)
		}
		untouched("after a try")
		line := []driver.Claim{a.queue(mutex(name)), b.queue(reader(name)), b.queue(mutex(name))}
		untouched("with a line")
		waiting := a.waiting(line[0])
		for _, x := range []*actor{a, b} {
			if _, err := x.session.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		untouched("after renewals")
		b.leave(line[2])
		next := mutex(name)
		if g, held, err := b.session.(driver.Requeuer).Requeue(t.Context(), line[1], next); err != nil || held || g.Held {
			t.Fatalf("requeue: %+v, %v, %v", g, held, err)
		}
		untouched("after a release and a requeue")
		if n := foreignExtend.Run(t.Context(), s.raw, []string{name}, value, 11*age.Milliseconds()).Val(); n != int64(1) {
			t.Fatal("the other program cannot extend")
		}
		if n := foreignRelease.Run(t.Context(), s.raw, []string{name}, value).Val(); n != int64(1) {
			t.Fatal("the other program cannot release")
		}
		granted(t, waiting)
		s.stands(t, line[0], next)
	}
}

// The server loses the counter of tokens and all scripts between two grants. The tokens go on
// growing, whichever script grants.
func TestCounterAndScriptsAreLostBetweenGrants(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	for _, open := range []struct {
		name string
		make func(t *testing.T) driver.Session
	}{
		{"by URL", func(t *testing.T) driver.Session {
			t.Helper()
			d := byURL(t, server.Addr())
			t.Cleanup(func() { _ = d.Close(t.Context()) })
			session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: age})
			if err != nil {
				t.Fatal(err)
			}
			return session
		}},
		{"with the user's client", func(t *testing.T) driver.Session {
			t.Helper()
			return s.actorWith(t, age, redislock.Options{}).session
		}},
	} {
		t.Run(open.name, func(t *testing.T) {
			session := open.make(t)
			var counter string
			lose := func() {
				t.Helper()
				if err := s.raw.Del(t.Context(), counter).Err(); err != nil {
					t.Fatal(err)
				}
				if err := s.raw.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			last := uint64(0)
			larger := func(what string, g driver.Grant, err error) {
				t.Helper()
				if err != nil || !g.Held || g.Fence < last+driver.Stride {
					t.Fatalf("%s after token %d: %+v, %v; want one larger by %d", what, last, g, err, driver.Stride)
				}
				last = g.Fence
			}
			for range 3 {
				name := s.name("counter")
				counter, _, _ = sideKeys(name)
				last = 0
				lose()
				first := mutex(name)
				g, err := session.Acquire(t.Context(), first)
				larger("a free name", g, err)
				if held, err := session.Release(t.Context(), first); err != nil || !held {
					t.Fatalf("release: %v, %v", held, err)
				}
				lose()
				free := mutex(name)
				g, err = session.Acquire(t.Context(), free)
				larger("a free name", g, err)
				lose()
				next := mutex(name)
				g, _, err = session.(driver.Requeuer).Requeue(t.Context(), free, next)
				larger("a turn", g, err)
				queued := mutex(name)
				if g, err := session.Acquire(t.Context(), queued); err != nil || g.Held {
					t.Fatalf("acquire: %+v, %v", g, err)
				}
				lose()
				if held, err := session.Release(t.Context(), next); err != nil || !held {
					t.Fatalf("release: %v, %v", held, err)
				}
				g, err = session.Wait(t.Context(), queued)
				larger("a handoff", g, err)
				s.sound(t, name)
				if held, err := session.Release(t.Context(), queued); err != nil || !held {
					t.Fatalf("release: %v, %v", held, err)
				}
			}
		})
	}
}

// Somebody's data without an end is said to look like data, after a while.
func TestDataAtANameIsToldFromALock(t *testing.T) {
	t.Parallel()
	s := newStage(t, servertest.Redis(t))
	a := s.actorWith(t, time.Second, redislock.Options{})
	name := s.name("data")
	if err := s.raw.Set(t.Context(), name, "somebody's data", 0).Err(); err != nil {
		t.Fatal(err)
	}
	c := a.queue(mutex(name))
	until(t, "the holder is said to look like data", func() bool {
		g := a.acquire(c)
		return g.Holder != nil && strings.Contains(g.Holder.Note, "looks like somebody's data")
	})
	a.leave(c)
}
