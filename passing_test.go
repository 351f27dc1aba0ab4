package interlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// crowd lets n goroutines wait for m, each of which holds it for a while and reports how it did,
// until the returned function is called.
func crowd(t *testing.T, n int, m *interlock.Mutex, hold time.Duration, again bool, held func(*interlock.Lease)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				l, err := m.Lock(ctx)
				if err != nil {
					matches(t, err, context.Canceled)
					return
				}
				held(l)
				time.Sleep(hold)
				release(t, l)
				if !again {
					return
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

func TestPassing_AtMost31TimesAndForTenMilliseconds(t *testing.T) {
	for _, c := range []struct {
		section time.Duration
		turns   int
	}{
		{0, driver.Stride},
		{100 * time.Microsecond, driver.Stride},
		{time.Millisecond, 10},
		{4 * time.Millisecond, 3}, // after 8 ms a third, after 12 ms no fourth
		{10 * time.Millisecond, 1},
		{time.Second, 1},
	} {
		bubble(t, func(t *testing.T) {
			_, a, b := two(t)
			first := lock(t.Context(), t, b.Mutex("m"))
			turns := 0
			stop := crowd(t, 100, a.Mutex("m"), c.section, false, func(*interlock.Lease) { turns++ })
			defer stop()
			synctest.Wait()
			next := background(func() (*interlock.Lease, error) { return b.Mutex("m", interlock.Isolated()).Lock(t.Context()) })
			synctest.Wait()
			start := time.Now()
			release(t, first)
			l := next.wait(t)
			if turns != c.turns || time.Since(start) != time.Duration(c.turns)*c.section {
				t.Errorf("sections of %v: %d turns in %v before the other process, want %d", c.section, turns, time.Since(start), c.turns)
			}
			release(t, l)
		})
	}
}

func TestPassing_TokensGrowThroughAllOfIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		last, turns := uint64(0), 0
		held := func(l *interlock.Lease) {
			if l.Fence() <= last {
				t.Errorf("token %d after %d", l.Fence(), last)
			}
			last = l.Fence()
			turns++
		}
		var stops []func()
		for range 4 {
			stops = append(stops, crowd(t, 60, newClient(t, store.Share(), nil).Mutex("m"), 50*time.Microsecond, true, held))
		}
		time.Sleep(200 * time.Millisecond)
		for _, stop := range stops {
			stop()
		}
		if turns < 1000 {
			t.Errorf("%d turns", turns)
		}
	})
}

// One process has one goroutine that wants the lock all the time, another has a hundred. With
// sections that are longer than a tenure they have equally many; with short ones they have equally
// many grants of the store.
func TestPassing_ProcessesAlternateHoweverManyWait(t *testing.T) {
	for _, section := range []time.Duration{20 * time.Millisecond, time.Millisecond} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			var grants, turns [2]int
			var stops []func()
			for i, n := range []int{1, 100} {
				d := &spy{Driver: store.Share()}
				last := ""
				stops = append(stops, crowd(t, n, newClient(t, d, nil).Mutex("m"), section, true, func(*interlock.Lease) {
					turns[i]++
					if id := claims(t, store, "m")[0].PublicID; id != last {
						last = id
						grants[i]++
					}
				}))
			}
			time.Sleep(20 * time.Second)
			for _, stop := range stops {
				stop()
			}
			even := func(what string, n [2]int) {
				t.Helper()
				if n[0] < 100 || 10*n[0] < 9*n[1] || 10*n[1] < 9*n[0] {
					t.Errorf("sections of %v: %d %s of the one, %d of the hundred", section, n[0], what, n[1])
				}
			}
			even("grants", grants)
			if section > 10*time.Millisecond {
				even("turns", turns)
			}
		})
	}
}

func TestPassing_OnlyAmongThoseWhoAreAlike(t *testing.T) {
	for what, choices := range map[string]func(i int) []interlock.LockOption{
		"notes":    func(i int) []interlock.LockOption { return []interlock.LockOption{interlock.Note(fmt.Sprint(i))} },
		"least":    func(int) []interlock.LockOption { return []interlock.LockOption{interlock.MinHold(time.Second)} },
		"isolated": func(int) []interlock.LockOption { return []interlock.LockOption{interlock.Isolated()} },
	} {
		bubble(t, func(t *testing.T) {
			store, c, _ := two(t)
			first := lock(t.Context(), t, c.Mutex("m", choices(0)...))
			var waits []*attempt
			for i := range 4 {
				waits = append(waits, background(func() (*interlock.Lease, error) { return c.Mutex("m", choices(i+1)...).Lock(t.Context()) }))
				synctest.Wait()
			}
			seen := map[string]bool{claims(t, store, "m")[0].PublicID: true}
			release(t, first)
			for i, w := range waits {
				l := w.wait(t)
				holder := claims(t, store, "m")[0]
				if seen[holder.PublicID] {
					t.Errorf("%s: claim %d was passed on", what, i)
				}
				if what == "notes" && holder.Note != fmt.Sprint(i+1) {
					t.Errorf("the note is %q", holder.Note)
				}
				seen[holder.PublicID] = true
				release(t, l)
			}
		})
	}
	bubble(t, func(t *testing.T) { // nor where a grant has one token only
		store := memlock.New()
		c := newClient(t, single{store}, nil)
		first := lock(t.Context(), t, c.Mutex("m"))
		next := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		before := claims(t, store, "m")[0].PublicID
		release(t, first)
		l := next.wait(t)
		if claims(t, store, "m")[0].PublicID == before {
			t.Error("passed on with a token of a stranger")
		}
		release(t, l)
	})
}

// single is a store whose tokens are raw numbers of its own.
type single struct{ *memlock.Driver }

func (d single) Traits() driver.Traits {
	traits := d.Driver.Traits()
	traits.Single = true
	return traits
}

func TestIsolated_HasASessionOfItsOwnThatEndsWithTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, nil)
		shared := []*interlock.Lease{lock(t.Context(), t, c.Mutex("a")), lock(t.Context(), t, c.Mutex("b"))}
		if n := d.count("open"); n != 1 {
			t.Errorf("%d sessions for two locks of one TTL", n)
		}
		one, two := lock(t.Context(), t, c.Mutex("c", interlock.Isolated())), lock(t.Context(), t, c.Mutex("d", interlock.Isolated()))
		if n := d.count("open"); n != 3 {
			t.Errorf("%d sessions, want two more", n)
		}
		release(t, one, two)
		synctest.Wait()
		if n := d.count("close"); n != 2 {
			t.Errorf("%d sessions were closed, want two", n)
		}
		_, err := c.Mutex("a", interlock.Isolated()).TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Mutex("a", interlock.Isolated()).Lock(ctx)
		matches(t, err, interlock.ErrHeld, context.DeadlineExceeded)
		synctest.Wait()
		if opened, closed := d.count("open"), d.count("close"); opened != 5 || closed != 4 {
			t.Errorf("%d sessions opened and %d closed, want those that got nothing closed too", opened, closed)
		}
		other := lock(t.Context(), t, c.Mutex("e", interlock.TTL(time.Minute)))
		if n := d.count("open"); n != 6 {
			t.Errorf("%d sessions: another TTL is another session", n)
		}
		release(t, append(shared, other)...)
	})
}
