package driver_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

const base = 1 << 51

func based(t *testing.T, d driver.Driver) driver.Driver {
	t.Helper()
	moved, err := driver.WithFenceBase(d, base)
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

func session(t *testing.T, d driver.Driver) driver.Session {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func claim(name string, k driver.Kind) driver.Claim {
	c := driver.Claim{Name: name, ID: driver.NewID(), Kind: k, Weight: driver.All, Limit: driver.All, Queue: true}
	if k == driver.Read {
		c.Weight = 1
	}
	return c
}

func acquire(t *testing.T, s driver.Session, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func line(t *testing.T, d driver.Driver, name string) driver.Line {
	t.Helper()
	l, err := d.(driver.Inspector).Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whatever says a token says it with the base, and the store keeps its own.
func TestFenceBaseIsInEveryToken(t *testing.T) {
	store := memlock.New()
	d := based(t, store.Share())
	a, b := session(t, d), session(t, d)
	check := func(who string, token uint64) {
		t.Helper()
		raw := line(t, store, "m")
		if len(raw.Claims) == 0 || raw.Claims[0].Fence == 0 || token != raw.Claims[0].Fence+base {
			t.Fatalf("%s says %d; the store has %+v, want %d more", who, token, raw, uint64(base))
		}
	}
	first, second, third := claim("m", driver.Mutex), claim("m", driver.Mutex), claim("m", driver.Mutex)
	g := acquire(t, a, first)
	check("Acquire", g.Fence)
	waits := acquire(t, b, second)
	if waits.Held || waits.Fence != 0 || waits.Holder == nil {
		t.Fatalf("who waits is answered %+v", waits)
	}
	check("Acquire of who holds", waits.Holder.Fence)

	lines, err := d.(driver.Inspector).Lines(t.Context(), "")
	if err != nil || len(lines) != 1 {
		t.Fatalf("lines %+v, %v", lines, err)
	}
	var watched driver.Line
	for watched, err = range d.(driver.Watcher).Watch(t.Context(), "m") {
		break
	}
	if err != nil {
		t.Fatal(err)
	}
	raw := line(t, store, "m")
	for who, l := range map[string]driver.Line{"Line": line(t, d, "m"), "Lines": lines[0], "Watch": watched} {
		check(who, l.Claims[0].Fence)
		if l.Fence != raw.Fence+base || l.Claims[1].Fence != 0 {
			t.Errorf("%s: tokens up to %d, of who waits %d; want %d and 0", who, l.Fence, l.Claims[1].Fence, raw.Fence+base)
		}
	}

	if _, err := a.Release(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if g, err = b.Wait(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	check("Wait", g.Fence)
	g, held, err := b.(driver.Requeuer).Requeue(t.Context(), second, third)
	if err != nil || !held {
		t.Fatalf("requeue: held %v, %v", held, err)
	}
	check("Requeue", g.Fence)

	// Whoever has no token has none with a base either.
	acquire(t, a, claim("none", driver.Read))
	if l := line(t, d, "none"); l.Fence != 0 || l.Claims[0].Fence != 0 {
		t.Errorf("a line without tokens is shown as %+v", l)
	}
}

// What breaks takes the token that is shown, and no other.
func TestFenceBaseIsWhatBreakTakes(t *testing.T) {
	store := memlock.New()
	d := based(t, store)
	s, c := session(t, d), claim("m", driver.Mutex)
	g := acquire(t, s, c)
	for _, token := range []uint64{0, 1, base, g.Fence - base, g.Fence + 1, g.Fence + base} {
		err := d.(driver.Inspector).Break(t.Context(), "m", driver.PublicID(c.ID), token, true)
		if !errors.Is(err, driver.ErrRefused) || token != 0 && !strings.Contains(err.Error(), fmt.Sprintf("fence base, %d", uint64(base))) {
			t.Errorf("broken with %d in place of %d: %v, want it refused and the base named", token, g.Fence, err)
		}
	}
	if err := d.(driver.Inspector).Break(t.Context(), "m", driver.PublicID(c.ID), g.Fence, true); err != nil {
		t.Errorf("broken with its own token: %v", err)
	}
	reader := claim("r", driver.Read)
	acquire(t, s, reader)
	if err := d.(driver.Inspector).Break(t.Context(), "r", driver.PublicID(reader.ID), 0, true); err != nil {
		t.Errorf("a reader broken with 0: %v", err)
	}
}

// far is a store whose tokens are at their end. It can do nothing that is optional.
type far struct {
	inner   driver.Driver
	release error // of its Release
}

func (f far) Traits() driver.Traits           { return f.inner.Traits() }
func (f far) Close(ctx context.Context) error { return f.inner.Close(ctx) }

func (f far) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := f.inner.Open(ctx, spec)
	return farSession{s, f}, err
}

type farSession struct {
	driver.Session
	f far
}

func (s farSession) far(g driver.Grant, err error) (driver.Grant, error) {
	if g.Fence != 0 {
		g.Fence = driver.MaxFence - driver.Stride + 1
	}
	return g, err
}

func (s farSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.far(s.Session.Acquire(ctx, c))
}

func (s farSession) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.far(s.Session.Wait(ctx, c))
}

func (s farSession) Release(ctx context.Context, c driver.Claim) (bool, error) {
	if s.f.release != nil {
		return false, s.f.release
	}
	return s.Session.Release(ctx, c)
}

func (s farSession) Requeue(ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
	g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
	g, err = s.far(g, err)
	return g, held, err
}

// A token beyond the range is refused, and its claim stands nowhere.
func TestFenceBaseBeyondTheRange(t *testing.T) {
	store := memlock.New()
	d := based(t, far{inner: store.Share()})
	a, other := session(t, d), session(t, store)
	refused := func(what string, g driver.Grant, err error) {
		t.Helper()
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "is beyond 9007199254740991: want a smaller base") || g.Held || g.Fence != 0 {
			t.Errorf("%s: %+v, %v; want it refused, with what would be right", what, g, err)
		}
		if l := line(t, store, "m"); len(l.Claims) > 0 {
			t.Fatalf("%s has left behind %+v", what, l.Claims)
		}
	}
	g, err := a.Acquire(t.Context(), claim("m", driver.Mutex))
	refused("Acquire", g, err)

	mine, theirs := claim("m", driver.Mutex), claim("m", driver.Mutex)
	acquire(t, other, theirs)
	acquire(t, a, mine)
	if _, err := other.Release(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	g, err = a.Wait(t.Context(), mine)
	refused("Wait", g, err)

	old := claim("m", driver.Read)
	if g := acquire(t, a, old); !g.Held {
		t.Fatal("a reader does not hold")
	}
	g, held, err := a.(driver.Requeuer).Requeue(t.Context(), old, claim("m", driver.Write))
	refused("Requeue", g, err)
	if !held {
		t.Error("the old claim was not held")
	}
}

// Where it cannot be given back, the error does not say that nothing was changed: it stands there.
func TestFenceBaseBeyondTheRangeAndNoAnswer(t *testing.T) {
	store := memlock.New()
	for i, failure := range []error{driver.ErrNotSent, driver.ErrRefused, errors.New("reset"), driver.ErrSessionLost} {
		s := session(t, based(t, far{store.Share(), failure}))
		_, err := s.Acquire(t.Context(), claim(fmt.Sprint("m", i), driver.Mutex))
		if errors.Is(failure, driver.ErrSessionLost) {
			if !errors.Is(err, failure) {
				t.Errorf("the session is lost meanwhile: %v", err)
			}
		} else if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), failure.Error()) {
			t.Errorf("a Release that failed with %v: %v, want an unknown outcome", failure, err)
		}
	}
}

// A store that cannot be looked into cannot be with a base, either, and has its own name for nothing.
func TestFenceBaseOnAStoreThatDoesLittle(t *testing.T) {
	d := based(t, struct{ driver.Driver }{memlock.New()})
	i := d.(driver.Inspector)
	_, one := i.Line(t.Context(), "m")
	_, all := i.Lines(t.Context(), "")
	for what, err := range map[string]error{"Line": one, "Lines": all, "Break": i.Break(t.Context(), "m", "x", base+1, true)} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want errors.ErrUnsupported", what, err)
		}
	}
	for _, err := range d.(driver.Watcher).Watch(t.Context(), "m") {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Watch: %v, want errors.ErrUnsupported", err)
		}
	}
	finder := d.(driver.RestFinder)
	if _, err := finder.Rest(t.Context(), "m"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Rest: %v, want errors.ErrUnsupported", err)
	}
	if err := finder.SignalRest(t.Context(), "m", os.Interrupt); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SignalRest: %v, want errors.ErrUnsupported", err)
	}
	quorum := d.(driver.Quorum)
	if _, err := quorum.Masters(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Masters: %v, want errors.ErrUnsupported", err)
	}
	if _, err := quorum.GiveUp(t.Context(), 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("GiveUp: %v, want errors.ErrUnsupported", err)
	}
	if key := d.(driver.Keyer).Key("m"); key != "m" {
		t.Errorf("key %q", key)
	}
	s := session(t, based(t, little{memlock.New()}))
	if _, ok := s.(driver.Requeuer); ok {
		t.Error("a session that cannot requeue can with a base")
	}
	if _, ok := s.(driver.Inheritor); ok {
		t.Error("a session without files has some with a base")
	}
	if n := s.(driver.LossNotifier).Lost(); n != nil {
		t.Error("a session that tells no loss tells it with a base")
	}
	if n := s.(driver.Nudger).Nudge(); n != nil {
		t.Error("a session that is not nudged is with a base")
	}
}

// What outlives its holder is found and told, with a base, too.
func TestFenceBaseOnAStoreThatFindsTheRest(t *testing.T) {
	store := &finding{Driver: memlock.New()}
	d := based(t, store).(driver.RestFinder)
	if rest, err := d.Rest(t.Context(), "m"); err != nil || len(rest) != 1 || !slices.Equal(rest[0].PIDs, []int{4711}) {
		t.Errorf("%+v, %v", rest, err)
	}
	if err := d.SignalRest(t.Context(), "m", os.Kill); err != nil || store.sent != os.Kill {
		t.Errorf("signal %v, %v", store.sent, err)
	}
}

// Masters are shown and given up with a base, too.
func TestFenceBaseOnAQuorum(t *testing.T) {
	store := &voting{Driver: memlock.New()}
	d := based(t, store).(driver.Quorum)
	if masters, err := d.Masters(t.Context()); err != nil || len(masters) != 1 || masters[0].Name != "master 1" {
		t.Errorf("%+v, %v", masters, err)
	}
	if _, err := d.GiveUp(t.Context(), 2, 4); err != nil || !slices.Equal(store.givenUp, []int{2, 4}) {
		t.Errorf("given up %v, %v", store.givenUp, err)
	}
}

// voting is a store with a master.
type voting struct {
	driver.Driver
	givenUp []int
}

func (v *voting) Masters(context.Context) ([]driver.Master, error) {
	return []driver.Master{{Name: "master 1"}}, nil
}

func (v *voting) GiveUp(ctx context.Context, masters ...int) ([]driver.Master, error) {
	v.givenUp = masters
	return v.Masters(ctx)
}

// finding is a store in which process 4711 outlives every holder.
type finding struct {
	driver.Driver
	sent os.Signal
}

func (f *finding) Rest(context.Context, string) ([]driver.Rest, error) {
	return []driver.Rest{{PIDs: []int{4711}}}, nil
}

func (f *finding) SignalRest(_ context.Context, _ string, sig os.Signal) error {
	f.sent = sig
	return nil
}

// little is a store whose sessions can do nothing that is optional.
type little struct{ driver.Driver }

func (l little) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := l.Driver.Open(ctx, spec)
	return struct{ driver.Session }{s}, err
}

// single is a store with raw tokens.
type single struct{ driver.Driver }

func (s single) Traits() driver.Traits {
	t := s.Driver.Traits()
	t.Single = true
	return t
}

func TestFenceBaseThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		d    driver.Driver
		base uint64
		says string
	}{
		{memlock.New(), 1<<52 + 1, "fence base 4503599627370497: want at most 4503599627370496"},
		{memlock.NewPersonality(memlock.Personality{NoFence: true}), 1, "a store that draws no tokens: want none"},
		{single{memlock.New()}, 1, "raw numbers, which others have from it as they are: want none"},
		{based(t, memlock.New()), 1, "opened with one of 2251799813685248: want it given once"},
	} {
		if _, err := driver.WithFenceBase(c.d, c.base); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
	if _, err := driver.WithFenceBase(memlock.New(), 1<<52); err != nil {
		t.Errorf("the largest: %v", err)
	}
}

func init() {
	driver.Register("without", func(_ context.Context, u *url.URL) (driver.Driver, error) {
		return memlock.NewPersonality(memlock.Personality{NoFence: true}), driver.NewParams(u).Err()
	})
}

func TestOpenURLWithAFenceBase(t *testing.T) {
	d, err := driver.OpenURL(t.Context(), "mem:fence-base?fence_base=1800000000000000")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := driver.OpenURL(t.Context(), "mem:fence-base?fence_base=0")
	if err != nil {
		t.Fatal(err)
	}
	g := acquire(t, session(t, d), claim("m", driver.Mutex))
	if l := line(t, raw, "m"); g.Fence != l.Claims[0].Fence+1_800_000_000_000_000 {
		t.Errorf("token %d, in the store %d", g.Fence, l.Claims[0].Fence)
	}
	for rawURL, says := range map[string]string{
		"mem:?fence_base=-1":                    `parameter fence_base of the store's URL: "-1": want a number from 0 to 4503599627370496`,
		"mem:?fence_base=":                      `"": want a number`,
		"mem:?fence_base":                       `"": want a number`,
		"mem:?fence_base=1e15":                  `"1e15": want a number`,
		"mem:?fence_base=99999999999999999999":  `"99999999999999999999": want a number`,
		"mem:?fence_base=9007199254740991":      "fence base 9007199254740991: want at most 4503599627370496",
		"mem:?fence_base=1&fence_base=2":        "stands 2 times",
		"mem:?fence_base=%zz":                   "malformed",
		"mem:?fence-base=1":                     `unknown parameter "fence-base" in the store's URL: known are fence_base`,
		"mem:?colour=red&fence_base=1&shape=no": `unknown parameter "colour"`,
		"without:?fence_base=1":                 "draws no tokens",
	} {
		if _, err := driver.OpenURL(t.Context(), rawURL); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", rawURL, err, says)
		}
	}
}

func TestCutFenceBase(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://a/?db=1&fence_base=7&prefix=a%2Fb+c": "redis://a/?db=1&prefix=a%2Fb+c 7 <nil>",
		"postgres://a/b?fence_base=7":                 "postgres://a/b 7 <nil>",
		"postgres://?x=y":                             "postgres://?x=y 0 <nil>",
		"file:/a?x=%zz;&&y":                           "file:/a?x=%zz;&&y 0 <nil>",
		"file:/a":                                     "file:/a 0 <nil>",
		"://:word@":                                   "://:word@ 0 <nil>",
		"file:/a?fence_base=x":                        `file:/a 0 driver: parameter fence_base of the store's URL: "x": want a number from 0 to 4503599627370496, larger than all tokens that were drawn elsewhere`,
	} {
		rest, n, err := driver.CutFenceBase(raw)
		if got := fmt.Sprint(rest, " ", n, " ", err); got != want {
			t.Errorf("%s: %s; want %s", raw, got, want)
		}
	}
}
