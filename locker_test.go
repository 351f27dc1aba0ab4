package interlock_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// policy notes what it is called with, and returns.
type policy struct {
	mu   sync.Mutex
	errs []error
}

func (p *policy) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

func (p *policy) told() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errs
}

// quiet fails the test at the first error.
func quiet(t *testing.T) func(error) {
	t.Helper()
	return func(err error) { t.Errorf("the policy is called with %v", err) }
}

func TestLocker_ExcludesOverProcesses(t *testing.T) {
	for kind, locker := range map[string]func(*interlock.Client) sync.Locker{
		"mutex":     func(c *interlock.Client) sync.Locker { return c.Mutex("m").Locker(quiet(t)) },
		"for write": func(c *interlock.Client) sync.Locker { return c.RWMutex("m").Locker(quiet(t)) },
	} {
		bubble(t, func(t *testing.T) {
			store, a, b := two(t)
			inside, n := 0, 0
			var all sync.WaitGroup
			for _, c := range []*interlock.Client{a, b} {
				k := locker(c)
				for range 10 {
					all.Go(func() {
						for range 10 {
							k.Lock()
							if inside++; inside != 1 {
								t.Errorf("%s: %d inside", kind, inside)
							}
							n++
							time.Sleep(time.Millisecond)
							inside--
							k.Unlock()
						}
					})
				}
			}
			all.Wait()
			if left := claims(t, store, "m"); n != 200 || len(left) != 0 {
				t.Errorf("%s: %d of 200 times inside, still in line: %v", kind, n, left)
			}
		})
	}
}

// Its goroutines wait in the client's line, where a lease is passed on.
func TestLocker_PassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		k := newClient(t, store, nil).Mutex("m").Locker(quiet(t))
		k.Lock()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				k.Lock()
				defer k.Unlock()
			})
		}
		synctest.Wait()
		before := store.Calls()
		k.Unlock()
		all.Wait()
		if n := store.Calls() - before; n != 1 {
			t.Errorf("%d calls of the store for 20 turns that wait, want that of the last release", n)
		}
	})
}

// A loss is told when the lease's context ends, a grace before the next is granted, and once.
func TestLocker_TellsALossBeforeTheNextIsGranted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		a, b := newClient(t, cut, nil), newClient(t, store, nil)
		var told []time.Time
		k := a.Mutex("m").Locker(func(err error) {
			matches(t, err, interlock.ErrLost)
			told = append(told, time.Now())
			time.Sleep(time.Minute) // for which Unlock waits
		})
		k.Lock()
		next := granted(t, b, "m")
		resume := cut.Stall()
		at := <-next
		resume()
		k.Unlock()
		if len(told) != 1 || at.Sub(told[0]) != 1500*time.Millisecond || time.Since(told[0]) < time.Minute {
			t.Errorf("told at %v, next granted at %v, unlocked at %v: want once, the grace of 1.5s before, a minute before", told, at, time.Now())
		}
		k.Lock()
		live := len(claims(t, store, "m")) == 1
		k.Unlock()
		if !live || len(told) != 1 {
			t.Errorf("told %d times of one loss; locked again: %v", len(told), live)
		}
	})
}

// The store forgets the claim, and Unlock is the first to hear of it.
func TestLocker_UnlockTellsWhatItIsTheFirstToHear(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		var p policy
		k := c.Mutex("m").Locker(p.note)
		k.Lock()
		store.Forget("m")
		k.Unlock()
		if len(p.told()) != 1 {
			t.Fatalf("told %v, want one loss", p.told())
		}
		matches(t, p.told()[0], interlock.ErrLost, driver.ErrGone)
	})
}

// Goroutine 1 loses its lease and does not know; 2 waits for its Unlock, which leaves the lease of
// 2 alone. If 2 loses its lease while it waits, it takes another: nobody has worked under the
// first.
func TestLocker_GoroutinesExcludeEachOtherAfterALoss(t *testing.T) {
	for _, twice := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			store, c, _ := two(t)
			var p policy
			k := c.Mutex("m").Locker(p.note)
			k.Lock()
			var all sync.WaitGroup
			unlocked := false
			all.Go(func() {
				k.Lock()
				if !unlocked {
					t.Error("2 is inside beside 1")
				}
				time.Sleep(time.Hour)
				if len(claims(t, store, "m")) != 1 {
					t.Error("2 has no lease any more")
				}
				if with := recovered(k.Unlock); with != nil {
					t.Errorf("Unlock of 2 panics with %v", with)
				}
			})
			synctest.Wait()
			store.Lose("m")
			time.Sleep(time.Minute)
			if twice {
				store.Lose("m")
				time.Sleep(time.Minute)
			}
			unlocked = true
			k.Unlock()
			all.Wait()
			if got := p.told(); len(got) != 1 {
				t.Errorf("told %v, want the loss of 1 alone", got)
			}
		})
	}
}

// What Lock cannot do the policy is told, and Lock goes on trying: it never returns without the
// lock.
func TestLocker_LockTriesAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		var p policy
		k := a.Mutex("m", interlock.Wait(0)).Locker(p.note)
		l := lock(t.Context(), t, b.Mutex("m"))
		defer time.AfterFunc(2500*time.Millisecond, func() { release(t, l) }).Stop() // where Lock returned too early, it must not outlive the test
		start := time.Now()
		k.Lock()
		if held := claims(t, store, "m"); len(held) != 1 || held[0].Owner.Name != "ann" {
			t.Fatalf("Lock has returned, and the lock has %v", held)
		}
		if got := p.told(); len(got) != 3 || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v, want three errors in three seconds", got, time.Since(start))
		}
		for _, err := range p.told() {
			matches(t, err, interlock.ErrHeld)
		}
		k.Unlock()
	})
}

func TestLocker_PanicOnLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		k := c.Mutex("m").Locker(interlock.PanicOnLoss)
		k.Lock()
		store.Forget("m")
		err, _ := recovered(k.Unlock).(error)
		matches(t, err, interlock.ErrLost)
		k.Lock() // the panic has left it unlocked
		if len(claims(t, store, "m")) != 1 {
			t.Error("nobody holds it")
		}
		k.Unlock()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		err, _ = recovered(k.Lock).(error)
		matches(t, err, interlock.ErrClosed)
	})
}

func TestLocker_IsUsedWrongly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, c, _ := two(t)
		for what, f := range map[string]func(){
			"interlock: a Locker without a policy: choose PanicOnLoss, or what else is to be done with an error": func() { c.Mutex("m").Locker(nil) },
			"interlock: Unlock of a Locker that is not locked":                                                   c.Mutex("m").Locker(quiet(t)).Unlock,
		} {
			if got := fmt.Sprint(recovered(f)); got != what {
				t.Errorf("panics with %q, want %q", got, what)
			}
		}
	})
}

// recovered runs f and returns what it panicked with.
func recovered(f func()) (with any) {
	defer func() { with = recover() }()
	f()
	return nil
}
