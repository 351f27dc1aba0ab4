package interlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

func TestMulti_TakesEachNameOnceInTheOrderOfBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, nil)
		names := []string{"b", "é", "a", "b", "B", "a"}
		l := lock(t.Context(), t, c.Multi(names))
		order := func(op string) string {
			var got []string
			for _, call := range d.made(op) {
				got = append(got, call.claim.Name)
			}
			return strings.Join(got, " ")
		}
		if got := order("acquire"); got != "B a b é" {
			t.Errorf("taken in the order %s", got)
		}
		if !slices.Equal(names, []string{"b", "é", "a", "b", "B", "a"}) {
			t.Errorf("the caller's names became %q", names)
		}
		for _, name := range []string{"B", "a", "b", "é"} {
			f := l.FenceOf(name)
			if f == 0 || interlock.Fence(l.Context(), name) != f || claims(t, d.Driver, name)[0].Fence != f {
				t.Errorf("token %d of %s, %d in the context", f, name, interlock.Fence(l.Context(), name))
			}
		}
		if l.Fence() != 0 || l.FenceOf("other") != 0 {
			t.Error("a token for no single name")
		}
		release(t, l)
		for _, name := range []string{"B", "a", "b", "é"} {
			if n := len(claims(t, d.Driver, name)); n != 0 {
				t.Errorf("%d claims of %s after the release", n, name)
			}
		}
	})
}

func TestMulti_AllOrNothingWithinOneWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		held, later := lock(t.Context(), t, a.Mutex("b")), lock(t.Context(), t, a.Mutex("c"))
		start := time.Now()
		time.AfterFunc(600*time.Millisecond, func() { release(t, held) })
		_, err := b.Multi([]string{"a", "b", "c", "d"}, interlock.Wait(time.Second)).Lock(t.Context())
		matches(t, err, interlock.ErrHeld)
		var e *interlock.Error
		if !errors.As(err, &e) || e.Name != "c" || time.Since(start) != time.Second {
			t.Errorf("%v after %v: want that of c after one second for all", err, time.Since(start))
		}
		synctest.Wait()
		for _, name := range []string{"a", "b", "d"} {
			if n := len(claims(t, store, name)); n != 0 {
				t.Errorf("%d claims of %s are kept", n, name)
			}
		}
		release(t, later)
		release(t, must[*interlock.Lease](t)(b.Multi([]string{"a", "b", "c", "d"}).TryLock(t.Context())))
	})
}

func TestMulti_OneLossEndsTheLeaseAndTheOthersAreKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		err := c.Multi([]string{"a", "b", "c"}).Do(t.Context(), func(ctx context.Context) error {
			store.Lose("b")
			matches(t, context.Cause(ctx), interlock.ErrLost)
			time.Sleep(time.Minute)
			for _, name := range []string{"a", "c"} {
				if n := len(claims(t, store, name)); n != 1 {
					t.Errorf("%d claims of %s while fn runs", n, name)
				}
			}
			return nil
		})
		matches(t, err, interlock.ErrLost)
		synctest.Wait()
		for _, name := range []string{"a", "b", "c"} {
			if n := len(claims(t, store, name)); n != 0 {
				t.Errorf("%d claims of %s afterwards", n, name)
			}
		}
	})
}

func TestMulti_InsideOneOfItsNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		b := lock(t.Context(), t, c.Mutex("b"))
		names := []string{"a", "b", "c"}
		_, err := c.Multi(names).Lock(b.Context())
		matches(t, err, interlock.ErrDeadlock)
		synctest.Wait()
		if n := len(claims(t, store, "a")); n != 0 {
			t.Errorf("%d claims of a are kept", n)
		}
		l := lock(b.Context(), t, c.Multi(names, interlock.Reentrant()))
		if l.FenceOf("b") != b.Fence() || l.FenceOf("a") == 0 {
			t.Errorf("tokens %d of b, which has %d, and %d of a", l.FenceOf("b"), b.Fence(), l.FenceOf("a"))
		}
		release(t, l)
		if n := len(claims(t, store, "b")); n != 1 || b.Err() != nil {
			t.Errorf("%d claims of b, %v", n, b.Err())
		}
		release(t, b)
	})
}

func TestMulti_ImpossibleNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		for _, names := range [][]string{nil, {}, {"good", ""}, {"good", "a\nb", "also"}} {
			m := c.Multi(names)
			if m.Err() == nil {
				t.Errorf("%q are possible", names)
			}
			_, err := m.Lock(t.Context())
			matches(t, err, m.Err())
			matches(t, m.Do(t.Context(), func(context.Context) error { t.Error("fn ran"); return nil }), m.Err())
		}
		if n := store.Calls(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// A MinHold binds what somebody got. A Multi that could not have its second name leaves its first
// to others at once.
func TestMulti_ThatFailsKeepsNothingForItsMinHold(t *testing.T) {
	for _, how := range []string{"try", "wait", "cancelled"} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
			l := hold(t, a, "second")
			var err error
			switch both := b.Multi([]string{"first", "second"}, interlock.MinHold(time.Minute), interlock.Wait(time.Second)); how {
			case "try":
				_, err = both.TryLock(t.Context())
			case "wait":
				_, err = both.Lock(t.Context())
			case "cancelled":
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				_, err = both.Lock(ctx)
				cancel()
			}
			if !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("%s: %v, want ErrHeld", how, err)
			}
			synctest.Wait()
			if l, err := a.Mutex("first").TryLock(t.Context()); err != nil {
				t.Errorf("%s: a name that nobody got is kept: %v", how, err)
			} else {
				_ = l.Release()
			}
			_ = l.Release()
		})
	}
}

// Nor does a Lock keep anything that is cancelled in the moment of its grant.
func TestMinHold_OfALockCancelledInTheMomentOfItsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		if err := interlock.GiveUpInTheMomentOfItsGrant(t.Context(), a.Mutex("m", interlock.MinHold(time.Hour))); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, want that it was cancelled", err)
		}
		synctest.Wait()
		if l, err := b.Mutex("m").TryLock(t.Context()); err != nil {
			t.Errorf("a name that nobody got is kept: %v", err)
		} else {
			_ = l.Release()
		}
	})
}

// The names are got one after the other, and the lease begins with the last of them.
func TestMulti_MaxHoldCountsFromTheLastName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		held := lock(t.Context(), t, a.Mutex("b"))
		time.AfterFunc(15*time.Second, func() { release(t, held) })
		l := lock(t.Context(), t, b.Multi([]string{"a", "b"}, interlock.MaxHold(20*time.Second), interlock.Grace(time.Second)))
		start := time.Now()
		if d := told(t, l).Sub(start); d != 19*time.Second || !errors.Is(l.Err(), interlock.ErrMaxHold) {
			t.Errorf("told after %v of %v, want ErrMaxHold 19 s after the last name was got", d, l.Err())
		}
		matches(t, l.Release(), interlock.ErrMaxHold)
	})
}

// Nor does a MinHold begin before its lease: a name that was got long before the last is kept as
// long as that one.
func TestMulti_MinHoldCountsFromTheLastName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		held := lock(t.Context(), t, a.Mutex("b"))
		time.AfterFunc(15*time.Second, func() { release(t, held) })
		l := lock(t.Context(), t, b.Multi([]string{"a", "b"}, interlock.MinHold(20*time.Second)))
		start := time.Now()
		release(t, l)
		for _, name := range []string{"a", "b"} {
			next := lock(t.Context(), t, a.Mutex(name))
			if d := time.Since(start); d != 20*time.Second {
				t.Errorf("%s: the next was granted %v after the lease began, want its MinHold of 20s", name, d)
			}
			release(t, next)
		}
	})
}

func TestMulti_ASilentStoreCostsTheTimeOfOne(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		l := lock(t.Context(), t, c.Multi(names))
		defer store.Stall()()
		start := time.Now()
		matches(t, l.Release(), interlock.ErrUncertain)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("six names are released in %v, want the two seconds of one", d)
		}
	})
	bubble(t, func(t *testing.T) { // nor do those that it has when it cannot have the last
		store, a, b := two(t)
		l := lock(t.Context(), t, a.Mutex("z"))
		time.AfterFunc(time.Second, func() {
			resume := store.Stall()
			time.AfterFunc(10*time.Second, resume)
		})
		start := time.Now()
		_, err := b.Multi(append(names, "z"), interlock.Wait(2*time.Second)).Lock(t.Context())
		matches(t, err, interlock.ErrHeld)
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("six names are given back in %v, want two seconds at most", d-2*time.Second)
		}
		time.Sleep(10 * time.Second)
		release(t, l)
	})
}

// A14: several locks at once are kept in part, or two who want the same ones block each other.
func TestA14_SeveralLocksAreAllOrNothingWithoutDeadlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		names := []string{"a", "b", "c", "d", "e", "f"}
		var holders [6]atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			c := newClient(t, store.Share(), nil)
			all.Go(func() {
				for range 150 {
					set := slices.Clone(names)
					rand.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
					set = set[:1+rand.IntN(len(set))]
					set = append(set, set[0])
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					l, err := c.Multi(set).Lock(ctx)
					cancel()
					if err != nil {
						t.Errorf("%v: not locked in ten minutes: %v", set, err)
						return
					}
					for _, name := range set[:len(set)-1] {
						if n := holders[name[0]-'a'].Add(1); n != 1 {
							t.Errorf("%d holders of %s", n, name)
						}
					}
					time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
					for _, name := range set[:len(set)-1] {
						holders[name[0]-'a'].Add(-1)
					}
					release(t, l)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		// One of them is taken: none is kept.
		a, b := newClient(t, store, nil), newClient(t, store.Share(), nil)
		l := lock(t.Context(), t, a.Mutex("c"))
		_, err := b.Multi(names).TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		_, err = b.Multi(names, interlock.Wait(time.Second)).Lock(t.Context())
		matches(t, err, interlock.ErrHeld)
		synctest.Wait()
		for _, name := range names {
			if n := len(claims(t, store, name)); n > 0 && name != "c" {
				t.Errorf("%d claims of %s are kept, want none", n, name)
			}
		}
		release(t, l)
	})
}
