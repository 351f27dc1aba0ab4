package redislock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// damage is something that somebody else has written beside a name.
type damage struct {
	says  string
	key   func(name string) string
	write []string // with KEY for the key, which is deleted before
	free  bool     // also who finds the name free meets it
}

func damages() []damage {
	counter := func(name string) string { c, _, _ := sideKeys(name); return c }
	line := func(name string) string { _, l, _ := sideKeys(name); return l }
	claims := func(name string) string { _, _, c := sideKeys(name); return c }
	return []damage{
		{"a list for a counter", counter, []string{"RPUSH", "KEY", "a"}, true},
		{"a word for a counter", counter, []string{"SET", "KEY", "abc"}, true},
		{"a fraction for a counter", counter, []string{"SET", "KEY", "12.5"}, true},
		{"a counter that overflows", counter, []string{"SET", "KEY", "9223372036854775806"}, true},
		{"a counter that Lua rounds", counter, []string{"SET", "KEY", "9007199254740990"}, true},
		{"a string for a line", line, []string{"SET", "KEY", "a"}, false},
		{"a list for claims", claims, []string{"RPUSH", "KEY", "a"}, false},
		{"a word for a note of other programs", claims, []string{"HSET", "KEY", "*", "abc"}, false},
		{"a word for the largest limit", claims, []string{"HSET", "KEY", "#", "abc"}, false},
	}
}

func (d damage) do(t *testing.T, s *servertest.Server, name string) {
	t.Helper()
	s.MustDo(t, "DEL", d.key(name))
	words := slices.Clone(d.write)
	words[1] = d.key(name)
	s.MustDo(t, words...)
}

// damaged checks that an error says which key is damaged, and is taken for nothing else.
func damaged(t *testing.T, what string, err error, key string) {
	t.Helper()
	classed(t, what, err, "is damaged", true)
	if err != nil && !strings.Contains(err.Error(), key) {
		t.Errorf("%s: %v: does not say %q", what, err, key)
	}
}

// What stands beside a name may be damaged: by hand, by a restore, by another program. Whoever asks
// is told at once, and which key it is. The store is not taken for one that does not answer, and
// what the failed call had done by then does not stay.
func TestDamageBesideANameIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	client := open(t, s.URL(), &interlock.Options{TTL: time.Minute, Patience: time.Hour})
	other := open(t, s.URL(), &interlock.Options{TTL: time.Minute, Patience: time.Hour})
	for _, d := range damages() {
		free, held, key := "free: "+d.says, "held: "+d.says, d.key
		d.do(t, s, free)
		for _, ask := range []struct {
			what string
			free bool // a short script answers
			call func() error
		}{
			{"try", true, func() error { return second(client.Mutex(free).TryLock(t.Context())) }},
			{"try to read", false, func() error { return second(client.RWMutex(free).TryRLock(t.Context())) }},
			{"lock", true, func() error { return second(client.Mutex(free).Lock(t.Context())) }},
			{"permit", false, func() error { return second(client.Semaphore(free, 2).Acquire(t.Context(), 1)) }},
		} {
			if !ask.free || d.free {
				damaged(t, d.says+": "+ask.what, ask.call(), key(free))
			}
			if t.Failed() {
				return // what is not refused is asked for as long as patience lasts
			}
		}
		if stands := s.MustDo(t, "EXISTS", free); stands != "0" {
			t.Errorf("%s: something stands at the name after calls that failed", d.says)
		}

		lease := hold(t, client.Mutex(held))
		d.do(t, s, held)
		damaged(t, d.says+": lock of what is held", second(other.Mutex(held).Lock(t.Context())), key(held))
		release(t, lease)
		s.MustDo(t, "DEL", key(free), key(held))
		release(t, hold(t, other.Mutex(free)), hold(t, other.Mutex(held)))
	}
}

// One damaged name is no reason to list no other.
func TestDamageHidesNoOtherName(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	client := open(t, s.URL(), &interlock.Options{TTL: time.Minute, Grace: 100 * time.Millisecond})
	hold(t, client.Mutex("sound"))
	look := over(t, redistest.Connect(t, redistest.NewProxies(t), s.URL())).(driver.Inspector)
	for _, d := range damages()[:7] { // of a note nobody is shown anything
		name := "damaged: " + d.says
		hold(t, shared{client.RWMutex(name)})
		d.do(t, s, name)
		s.MustDo(t, "SETNX", "il:{"+name+"}:fence:"+name, "0")
		lines, err := look.Lines(t.Context(), "")
		if len(lines) == 0 || lines[len(lines)-1].Name != "sound" {
			t.Errorf("%s: listed are %+v, want the sound name", d.says, lines)
		}
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), d.key(name)) {
			t.Errorf("%s: %v, want that %s is damaged", d.says, err, d.key(name))
		}
		s.MustDo(t, "DEL", d.key(name))
	}
}

// A note of those who share is damaged while they hold: whoever comes is told, and what is held
// stays.
func TestDamageAmongSharers(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	client, other := open(t, s.URL(), ttl(time.Minute)), open(t, s.URL(), ttl(time.Minute))
	lease := hold(t, shared{client.RWMutex("m")})
	_, _, claims := sideKeys("m")
	s.MustDo(t, "HSET", claims, "^", "abc")
	damaged(t, "write", second(other.RWMutex("m").Lock(t.Context())), claims)
	if err := client.Health(t.Context()); err != nil || lease.Err() != nil {
		t.Errorf("health %v, lease %v", err, lease.Err())
	}
	s.MustDo(t, "HDEL", claims, "^")
	release(t, lease)
	release(t, hold(t, other.RWMutex("m")))
}

// Who waits when the damage happens is told, too, by a renewal, and the session with everything
// else that it has goes on.
func TestDamageWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	for _, d := range damages() {
		a, b := s.actor(t), s.actor(t)
		name := s.name("damaged")
		mine, next := a.hold(mutex(name)), mutex(name)
		b.queue(next)
		answer := b.waiting(next)
		d.do(t, server, name)
		if r, err := b.session.Renew(t.Context()); err != nil {
			t.Errorf("%s: a renewal: %v, lost %v", d.says, err, r.Lost)
		}
		if err := answered(t, answer).err; !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), d.key(name)) {
			t.Errorf("%s: who waits is told %v, want that %s is damaged", d.says, err, d.key(name))
		}
		server.MustDo(t, "DEL", d.key(name))
		a.release(mine)
		if _, err := b.session.Release(t.Context(), next); err != nil { // held, where its line outlived that
			t.Error(err)
		}
	}
}

// A line goes: somebody deletes it, or a full server evicts it. Who waited in it finds that out by
// itself, whether others have made a new one meanwhile or not, and stands again; the claim does not
// wait where nobody would ever let it in.
func TestWhoWaitedInALineThatWentStandsAgain(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	for _, kind := range []string{"mutex", "write", "permit"} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, others came %t", kind, others), func(t *testing.T) {
				a, b := s.actor(t), s.actor(t)
				name := s.name("went")
				claim := mutex
				if kind == "permit" {
					claim = func(name string) driver.Claim { return permit(name, 1) }
				}
				mine, next := claim(name), claim(name)
				if kind == "write" {
					mine = reader(name)
				}
				a.hold(mine)
				b.queue(next)
				answer := b.waiting(next)
				_, line, _ := sideKeys(name)
				server.MustDo(t, "DEL", line)
				third := claim(name)
				if others {
					a.acquire(third)
				}
				if r, err := b.session.Renew(t.Context()); err != nil || !slices.Equal(r.Lost, []driver.Loss{{ID: next.ID, Err: driver.ErrGone}}) {
					t.Fatalf("renewed: lost %v, %v; want the claim that has lost its place", r.Lost, err)
				}
				if err := answered(t, answer).err; !errors.Is(err, driver.ErrGone) {
					t.Errorf("who waits is told %v, want that its claim is gone", err)
				}
				for _, c := range []driver.Claim{mine, third} {
					if _, err := a.session.Release(t.Context(), c); err != nil {
						t.Error(err)
					}
				}
				b.leave(next)
				b.release(b.hold(claim(name)))
			})
		}
	}
}

// What a newer version of the library has written is refused, also to who does not wait: it is not
// another program's lock.
func TestATryOfANewerLayoutIsRefused(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	client := open(t, s.URL(), ttl(time.Minute))
	s.MustDo(t, "SET", "m", "il2:whatever")
	_, err := client.Mutex("m").TryLock(t.Context())
	classed(t, "try", err, "update this program", true)
	s.MustDo(t, "SET", "m", "illness: theirs")
	if _, err := client.Mutex("m").TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("try of another program's lock: %v, want that it is held", err)
	}
}
