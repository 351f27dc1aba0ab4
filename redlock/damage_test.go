package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// damage is something that somebody else has written beside a name, or where a master keeps what it
// knows of itself.
type damage struct {
	says  string
	key   string   // NAME for the name
	write []string // behind the command the key is left out
	free  bool     // also who finds the name free meets it
}

func damages() []damage {
	const counter, line, claims = "il:{NAME}:qfence:NAME", "il:{NAME}:qline:NAME", "il:{NAME}:qclaims:NAME"
	return []damage{
		{"a list for a counter", counter, []string{"RPUSH", "a"}, true},
		{"a word for a counter", counter, []string{"SET", "abc"}, true},
		{"a fraction for a counter", counter, []string{"SET", "12.5"}, true},
		{"a counter that Lua rounds", counter, []string{"SET", "9007199254740990"}, true},
		{"a list for a line", line, []string{"RPUSH", "a"}, false},
		{"a string for claims", claims, []string{"SET", "a"}, false},
		{"a word for a note of other programs", claims, []string{"HSET", "*", "abc"}, false},
	}
}

// do damages a name on some masters, and returns which key.
func (d damage) do(t *testing.T, name string, set ...*servertest.Server) (key string) {
	t.Helper()
	key = strings.ReplaceAll(d.key, "NAME", name)
	for _, s := range set {
		const script = "redis.call('DEL', KEYS[1]); return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))" // whoever waits asks meanwhile
		s.MustDo(t, slices.Concat([]string{"EVAL", script, "1", key}, d.write)...)
	}
	return key
}

func mend(t *testing.T, key string, set ...*servertest.Server) {
	t.Helper()
	for _, s := range set {
		s.MustDo(t, "DEL", key)
	}
}

// damaged insists that an error says which key is damaged on which masters, and that asking again
// does not help.
func damaged(t *testing.T, what string, err error, key string, set []*servertest.Server, there ...*servertest.Server) {
	t.Helper()
	names := []string{fmt.Sprintf("of %d masters answered, and %d of these refused", len(set), len(there)), "is damaged", "CORRUPT " + key}
	for _, s := range there {
		names = append(names, s.Addr())
	}
	if !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("%s: %v, want that it is refused", what, err)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %q in it", what, err, name)
		}
	}
}

// clients opens two programs with a minute of time to live, that would ask again and again for an
// hour.
func clients(t *testing.T, url string) (one, two *interlock.Client) {
	t.Helper()
	for _, c := range []**interlock.Client{&one, &two} {
		var err error
		if *c, err = interlock.Open(t.Context(), url, &interlock.Options{TTL: time.Minute, Grace: 100 * time.Millisecond, Patience: time.Hour}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*c).Close() })
	}
	return one, two
}

// gone waits until nothing stands at a name. What a release has not reached yet it reaches soon.
func gone(t *testing.T, name string, set ...*servertest.Server) {
	t.Helper()
	until(t, 30*time.Second, "free of "+name, func() bool {
		return !slices.ContainsFunc(set, func(s *servertest.Server) bool { return s.MustDo(t, "EXISTS", name) != "0" })
	})
}

func second[T any](_ T, err error) error { return err }

// What stands beside a name on one of three masters is damaged. That one refuses, and the lock goes
// on by the other two: whoever comes gets in, whoever waits is let in by a release, and all are
// shown.
func TestDamageOnOneMasterIsOutvoted(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	one, two := session(t, d, time.Minute), session(t, open(t, urlOf(addrs(set))), time.Minute)
	for i, c := range damages() {
		name, sick := c.says, set[i%3]
		c.do(t, name, sick)
		held, next := mutex(name, true), mutex(name, true)
		for what, call := range map[string]func(ctx context.Context) error{
			"a try of a free name": func(ctx context.Context) error {
				try := mutex(name, false)
				g, err := one.Acquire(ctx, try)
				if err == nil && !g.Held {
					err = errors.New("it is not held")
				}
				return errors.Join(err, second(one.Release(ctx, try)))
			},
			"a turn": func(ctx context.Context) error {
				if _, err := acquire(ctx, one, held); err != nil {
					return err
				}
				c.do(t, name, sick) // a line may have been there
				if g, err := two.Acquire(ctx, next); g.Held || err != nil {
					return fmt.Errorf("behind a holder: held %v: %w", g.Held, err)
				}
				line, err := d.Line(ctx, name)
				if err != nil || len(line.Claims) != 2 {
					t.Errorf("%s: %d claims are shown, want two: %v", c.says, len(line.Claims), err)
				}
				for _, s := range []driver.Session{one, two} {
					if r, err := s.Renew(ctx); err != nil || len(r.Lost) > 0 {
						t.Errorf("%s: a renewal: %v, lost %d", c.says, err, len(r.Lost))
					}
				}
				if was, err := one.Release(ctx, held); !was || err != nil {
					return fmt.Errorf("a release: it was held %v: %w", was, err)
				}
				_, err = acquire(ctx, two, next)
				return errors.Join(err, second(two.Release(ctx, next)))
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if err := call(ctx); err != nil {
				t.Errorf("%s: %s with two sound masters: %v", c.says, what, err)
			}
			cancel()
		}
	}
}

// On two of three masters it is damaged, so that the third alone is left. Whoever asks is told at
// once, which key it is and where, and does not ask again. The third one, which has given itself to
// the claim by then, is free.
func TestDamageOnAMajorityIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	one, two := clients(t, urlOf(addrs(set)))
	for i, c := range damages() {
		sound, sick := set[i%3], []*servertest.Server{set[(i+1)%3], set[(i+2)%3]}
		free, held := "free: "+c.says, "held: "+c.says
		key := c.do(t, free, sick...)
		for what, call := range map[string]func() error{
			"a try":  func() error { return second(one.Mutex(free).TryLock(t.Context())) },
			"a lock": func() error { return second(one.Mutex(free).Lock(t.Context())) },
		} {
			if c.free {
				damaged(t, c.says+": "+what+" of a free name", call(), key, set, sick...)
			}
		}
		gone(t, free, set...)

		lease, err := one.Mutex(held).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		everywhere(t, set, held)
		key = c.do(t, held, sick...)
		damaged(t, c.says+": a lock of what is held", second(two.Mutex(held).Lock(t.Context())), key, set, sick...)
		until(t, 30*time.Second, c.says+": out of the line of the sound master, after a call that was refused", func() bool {
			return sound.MustDo(t, "ZCARD", "il:{"+held+"}:qline:"+held) == "0"
		})
		if err := lease.Release(); err != nil {
			t.Errorf("%s: a release: %v", c.says, err)
		}
		gone(t, held, set...)
		for _, name := range []string{free, held} {
			mend(t, strings.ReplaceAll(c.key, "NAME", name), sick...)
			lease, err := two.Mutex(name).Lock(t.Context())
			if err != nil {
				t.Fatalf("%s: a lock when it is mended: %v", c.says, err)
			}
			_ = lease.Release()
		}
	}
}

// It is damaged while somebody waits. He is told by a renewal, which does not fail for it, and
// leaves nothing behind.
func TestDamageWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	holds, waits := session(t, open(t, urlOf(addrs(set))), time.Minute), session(t, open(t, urlOf(addrs(set))), time.Minute)
	beside := mutex("beside", false)
	for i, c := range damages() {
		if i == 3 { // until then a renewal is of nothing else
			within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, waits, beside); return err })
		}
		held, next := mutex(c.says, true), mutex(c.says, true)
		within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, holds, held); return err })
		everywhere(t, set, c.says) // else who waits might take one of them
		within(t, "a claim that queues", func(ctx context.Context) error { _, err := waits.Acquire(ctx, next); return err })
		told := make(chan error, 1)
		go func() { told <- second(acquire(t.Context(), waits, next)) }()
		key := c.do(t, c.says, set[0], set[2])
		var err error
		until(t, 30*time.Second, "who waits is told that "+key+" is damaged", func() bool {
			if r, err := waits.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
				t.Fatalf("%s: a renewal of who waits: %v, lost %d", c.says, err, len(r.Lost))
			}
			select {
			case err = <-told:
				return true
			default:
				return false
			}
		})
		damaged(t, c.says+": who waits", err, key, set, set[0], set[2])
		if was, err := holds.Release(t.Context(), held); err != nil || !was { // another one is in line
			t.Errorf("%s: a release of who holds: %v, it was held %v", c.says, err, was)
		}
		if was, err := waits.Release(t.Context(), next); err != nil || was {
			t.Errorf("%s: a release of who waits: %v, it was held %v", c.says, err, was)
		}
		gone(t, c.says, set...)
		if n := set[1].MustDo(t, "EXISTS", strings.ReplaceAll("il:{NAME}:qline:NAME", "NAME", c.says)); n != "0" {
			t.Errorf("%s: somebody stands in the line of the sound master", c.says)
		}
	}
	if was, err := waits.Release(t.Context(), beside); !was || err != nil {
		t.Errorf("another claim of the same session: %v, it was held %v", err, was)
	}
}

// One of three masters is damaged, and one does not answer: the latter may come back, so it is no
// refusal, and the former is named.
func TestDamageBesideAMasterThatIsAway(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, 10*time.Second)
	key := damages()[0].do(t, "m", set[0])
	if err := set[1].Kill(); err != nil {
		t.Fatal(err)
	}
	c := mutex("m", true)
	_, err := s.Acquire(t.Context(), c)
	for err != nil && strings.Contains(err.Error(), "1 of 3 masters answered") { // the sound one was late
		_, err = s.Acquire(t.Context(), c)
	}
	if err == nil || errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), set[0].Addr()) || !strings.Contains(err.Error(), "CORRUPT "+key) ||
		!strings.Contains(err.Error(), "2 of 3 masters answered, and 1 of these refused") {
		t.Errorf("an acquire: %v, want that a master is missing, and that %s is damaged", err, key)
	}
	mend(t, key, set[0])
	within(t, "an acquire when it is mended", func(ctx context.Context) error {
		for {
			if _, err := acquire(ctx, s, c); err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
}

// One damaged name is no reason to list no other.
func TestDamageHidesNoOtherName(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, time.Minute)
	for _, name := range []string{"broken", "sound"} {
		if _, err := acquire(t.Context(), s, mutex(name, true)); err != nil {
			t.Fatal(err)
		}
		everywhere(t, set, name)
	}
	for _, c := range damages()[:5] { // claims are looked at where a line stands
		key := c.do(t, "broken", set[1:]...)
		set[0].MustDo(t, "SETNX", "il:{broken}:qfence:broken", "64")
		lines, err := d.Lines(t.Context(), "")
		if len(lines) != 1 || lines[0].Name != "sound" {
			t.Errorf("%s: listed are %+v, want the sound name", c.says, lines)
		}
		damaged(t, c.says+": to list", err, key, set, set[1:]...)
		mend(t, key, set[1:]...)
	}
}

// What a master keeps of itself is damaged. One of three costs its own vote, also for a program
// that opens; with two a program is told which key it is.
func TestDamageOfAMastersRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []damage{
		{says: "a list for a record", key: "il:{redlock}:member", write: []string{"RPUSH", "a"}},
		{says: "a word for a version", key: "il:{redlock}:member", write: []string{"HSET", "version", "abc"}},
		{says: "a list for a vote", key: "il:{redlock}:vote", write: []string{"RPUSH", "a"}},
		{says: "a word for a floor", key: "il:{redlock}:floor", write: []string{"SET", "abc"}},
		{says: "a list for the largest counter", key: "il:{redlock}:high", write: []string{"RPUSH", "a"}},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			set := startMasters(t, 3)
			before := session(t, open(t, urlOf(addrs(set))), time.Minute)
			key := c.do(t, "", set[2])
			d := open(t, urlOf(addrs(set)))
			after := session(t, d, time.Minute)
			for i, s := range []driver.Session{before, after} {
				for _, queue := range []bool{false, true} {
					m := mutex(fmt.Sprint("m", i, queue), queue)
					within(t, "an acquire by two masters", func(ctx context.Context) error { _, err := acquire(ctx, s, m); return err })
				}
			}
			masters, err := d.Masters(t.Context())
			if err != nil || masters[0].Err != nil || masters[2].Err == nil || !strings.Contains(masters[2].Err.Error(), "CORRUPT "+key) {
				t.Errorf("masters %+v, %v: want that %s is damaged at the third", masters, err, key)
			}
			c.do(t, "", set[1])
			damaged(t, "to open", opens(t, set), key, set, set[1:]...)
			for _, s := range set[1:] { // each comes back as one that knows nothing
				s.MustDo(t, "DEL", "il:{redlock}:member", "il:{redlock}:vote", "il:{redlock}:floor", "il:{redlock}:high", "il:{redlock}:used")
			}
			if err := opens(t, set); errors.Is(err, driver.ErrRefused) {
				t.Errorf("to open when the records are gone: %v", err)
			}
		})
	}
}

// opens opens masters and closes them.
func opens(t *testing.T, set []*servertest.Server) error {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), urlOf(addrs(set)))
	if err == nil {
		err = d.(*redlock.Driver).Close(t.Context()) //nolint:forcetypeassert // the scheme is ours
	}
	return err
}
