package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A1: someone who is not the owner, or is not any more, unlocks.
func TestA01_OnlyTheOwnerReleases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		m := a.Mutex("m", interlock.Reentrant())
		outer := lock(t.Context(), t, m)
		inner := lock(outer.Context(), t, m)
		release(t, inner, inner, inner) // its owner once, and then nobody
		if n := len(claims(t, store, "m")); n != 1 || outer.Err() != nil {
			t.Fatalf("releasing the inner lease again freed the outer: %d claims, %v", n, outer.Err())
		}
		// A claim that was passed on belongs to the next goroutine.
		next := background(func() (*interlock.Lease, error) { return a.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		release(t, outer)
		passed := next.wait(t)
		release(t, outer, inner)
		if n := len(claims(t, store, "m")); n != 1 || passed.Err() != nil {
			t.Fatalf("releasing the outer lease again freed the next: %d claims, %v", n, passed.Err())
		}
		// A lost lease belongs to nobody; the next holder is of another process.
		theirs := background(func() (*interlock.Lease, error) { return b.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		store.Lose("m")
		held := theirs.wait(t)
		matches(t, passed.Release(), interlock.ErrLost)
		time.Sleep(time.Minute)
		if held.Err() != nil {
			t.Errorf("the release of a lost lease freed the next: %v", held.Err())
		}
		release(t, held)
	})
}

// A2: an unconditional delete frees the next holder's lock.
func TestA02_ALateReleaseFreesNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		a, b := newClient(t, cut, nil), newClient(t, store, nil)
		late := lock(t.Context(), t, a.Mutex("m"))
		resume := cut.Stall()
		held := lock(t.Context(), t, b.Mutex("m")) // when a's time is over
		resume()
		matches(t, late.Release(), interlock.ErrLost)
		time.Sleep(time.Minute)
		if line := claims(t, store, "m"); len(line) != 1 || line[0].Fence != held.Fence() || held.Err() != nil {
			t.Errorf("a's late release freed b: %+v, %v", line, held.Err())
		}
		release(t, held)
	})
}

// A3: a cancelled Lock whose request had left keeps the lock until its time is over.
func TestA03_ACancelledLockLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		cut := store.Share()
		c := newClient(t, cut, nil)
		release(t, lock(t.Context(), t, c.Mutex("warm")))
		answer := cut.StallReplies()
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
		synctest.Wait()
		resume := cut.Stall()
		cancel()
		<-cancelled.done
		matches(t, cancelled.err, context.Canceled, interlock.ErrUnavailable)
		time.Sleep(5 * time.Second)
		if n := len(claims(t, store, "m")); n != 1 {
			t.Fatalf("%d claims: the request was to arrive, and nothing after it", n)
		}
		answer()
		resume()
		time.Sleep(time.Second)
		if line := claims(t, store, "m"); len(line) != 0 {
			t.Errorf("a second after the wire healed: %+v", line)
		}
		// The same for one who waits in line.
		l := lock(t.Context(), t, newClient(t, store, nil).Mutex("m"))
		waiting, stop := context.WithCancel(t.Context())
		a := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(waiting) })
		synctest.Wait()
		stop()
		<-a.done
		time.Sleep(time.Second)
		if line := claims(t, store, "m"); len(line) != 1 {
			t.Errorf("a second after the wait was cancelled: %+v", line)
		}
		release(t, l)
	})
}

// A4: the release travels on the request's context, which is over.
func TestA04_ReleaseIsSentAlthoughTheContextIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		for i := range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			l := lock(ctx, t, c.Mutex("m"))
			cancel()
			if err := l.Release(); err != nil {
				t.Fatalf("release %d: %v", i, err)
			}
			if n := len(claims(t, store, "m")); n != 0 {
				t.Fatalf("release %d left %d claims", i, n)
			}
		}
	})
}

// A5: success is reported although the lease is over already, because the reply was under way for longer than it.
func TestA05_AnAnswerThatComesTooLateIsNoLease(t *testing.T) {
	for _, late := range []time.Duration{13 * time.Second, 14 * time.Second, 15 * time.Second, 40 * time.Second} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			c := newClient(t, store, &interlock.Options{Patience: time.Hour})
			if err := c.Health(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(late, store.StallReplies())
			l := lock(t.Context(), t, c.Mutex("m"))
			if err := l.Err(); err != nil {
				t.Errorf("a reply %v late: got a lease that is over: %v", late, err)
			}
			if left := time.Until(l.Until()); left < 1500*time.Millisecond {
				t.Errorf("a reply %v late: a lease with %v of trust left", late, left)
			}
			if n := len(claims(t, store, "m")); n != 1 {
				t.Errorf("%d claims", n)
			}
			release(t, l)
		})
	}
}

// A6: the release of one attempt deletes the next, which has the same value.
func TestA06_EveryAttemptHasAnIDOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		granted := make(chan struct{})
		var acquires atomic.Int32
		d := &tap{Driver: store}
		d.after = func(op string, _ driver.Claim, err error) error {
			if op == "acquire" && acquires.Add(1) == 1 {
				return errors.New("connection reset") // after the store has done it
			}
			return err
		}
		first := ""
		d.before = func(op string, c driver.Claim) error {
			if op == "acquire" && first == "" {
				first = c.ID
			}
			if op == "release" && c.ID == first {
				<-granted // the first attempt's release is overtaken by the second attempt
			}
			return nil
		}
		c := newClient(t, d, &interlock.Options{TTL: 10 * time.Second})
		attempt := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
		time.Sleep(time.Second)
		close(granted)
		l := attempt.wait(t)
		time.Sleep(time.Minute)
		if n := len(claims(t, store, "m")); n != 1 || l.Err() != nil {
			t.Errorf("a minute later: %d claims, %v", n, l.Err())
		}
		release(t, l)
		seen := map[string]bool{}
		for _, call := range d.made("acquire") {
			if seen[call.claim.ID] {
				t.Errorf("two attempts with the ID %s", call.claim.ID)
			}
			seen[call.claim.ID] = true
		}
	})
}

// A7: held by another, could not tell, lost, and no longer held are one error.
func TestA07_EachFaultHasItsError(t *testing.T) {
	sentinels := []error{
		interlock.ErrHeld, interlock.ErrLost, interlock.ErrReleased, interlock.ErrDeadlock, interlock.ErrUncertain,
		interlock.ErrUnavailable, interlock.ErrClosed, interlock.ErrTooManyWaiters, interlock.ErrMaxHold,
		context.Canceled, context.DeadlineExceeded, errors.ErrUnsupported, driver.ErrRefused, driver.ErrBroken,
	}
	type setting struct {
		store    *memlock.Driver // of client and other
		client   *interlock.Client
		other    *interlock.Client
		deadline context.Context // over in a second
	}
	for _, c := range []struct {
		fault string
		err   func(t *testing.T, s setting) error
		want  []error
	}{
		{"try while held", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Mutex("m").TryLock(t.Context())
			return err
		}, []error{interlock.ErrHeld}},
		{"wait while held", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Mutex("m", interlock.Wait(time.Second)).Lock(t.Context())
			return err
		}, []error{interlock.ErrHeld}},
		{"deadline while held", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Mutex("m").Lock(s.deadline)
			return err
		}, []error{interlock.ErrHeld, context.DeadlineExceeded}},
		{"try while the store fails", func(t *testing.T, s setting) error {
			s.store.Fail(errors.New("refused"))
			_, err := s.client.Mutex("m").TryLock(t.Context())
			return err
		}, []error{interlock.ErrUnavailable}},
		{"wait while the store is silent", func(t *testing.T, s setting) error {
			t.Cleanup(s.store.Stall())
			_, err := s.client.Mutex("m").Lock(t.Context())
			return err
		}, []error{interlock.ErrUnavailable, context.DeadlineExceeded}},
		{"deadline while the store is silent", func(t *testing.T, s setting) error {
			t.Cleanup(s.store.Stall())
			_, err := s.client.Mutex("m").Lock(s.deadline)
			return err
		}, []error{interlock.ErrUnavailable, context.DeadlineExceeded}},
		{"cancelled before", func(t *testing.T, s setting) error {
			<-s.deadline.Done()
			_, err := s.client.Mutex("m").Lock(s.deadline)
			return err
		}, []error{context.DeadlineExceeded}},
		{"again in its own context", func(t *testing.T, s setting) error {
			_, err := s.client.Mutex("m").Lock(lock(t.Context(), t, s.client.Mutex("m")).Context())
			return err
		}, []error{interlock.ErrDeadlock}},
		{"lost", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			s.store.Lose("m")
			return l.Err()
		}, []error{interlock.ErrLost}},
		{"release of a lost one", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			s.store.Lose("m")
			return l.Release()
		}, []error{interlock.ErrLost}},
		{"after the release", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			release(t, l)
			return l.Err()
		}, []error{interlock.ErrReleased}},
		{"release while the store is silent", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			t.Cleanup(s.store.Stall())
			return l.Release()
		}, []error{interlock.ErrUncertain, context.DeadlineExceeded}},
		{"held for its maximum", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m", interlock.MaxHold(5*time.Second)))
			<-l.Context().Done()
			return context.Cause(l.Context())
		}, []error{interlock.ErrLost, interlock.ErrMaxHold}},
		{"silence for longer than the lease", func(t *testing.T, s setting) error {
			l := lock(t.Context(), t, s.client.Mutex("m"))
			t.Cleanup(s.store.Stall())
			<-l.Context().Done()
			return context.Cause(l.Context())
		}, []error{interlock.ErrLost, interlock.ErrUnavailable}},
		{"closed", func(t *testing.T, s setting) error {
			if err := s.client.Close(); err != nil {
				t.Error(err)
			}
			_, err := s.client.Mutex("m").Lock(t.Context())
			return err
		}, []error{interlock.ErrClosed}},
		{"a mutex's name as a semaphore", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			_, err := s.client.Semaphore("m", 1).Acquire(t.Context(), 1)
			return err
		}, []error{driver.ErrRefused}},
		{"broken while waiting", func(t *testing.T, s setting) error {
			lock(t.Context(), t, s.other.Mutex("m"))
			a := background(func() (*interlock.Lease, error) { return s.client.Mutex("m").Lock(t.Context()) })
			synctest.Wait()
			if err := s.store.Break(t.Context(), "m", claims(t, s.store, "m")[1].PublicID, 0, false); err != nil {
				t.Error(err)
			}
			<-a.done
			return a.err
		}, []error{driver.ErrBroken}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := memlock.New()
				deadline, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				s := setting{store, newClient(t, store, nil), newClient(t, store, nil), deadline}
				err := c.err(t, s)
				sentinels := sentinels
				if c.fault == "silence for longer than the lease" { // the renewal ends at the same moment, or just before
					sentinels = slices.DeleteFunc(slices.Clone(sentinels), func(e error) bool { return e == context.DeadlineExceeded }) //nolint:errorlint // the value itself
				}
				for _, sentinel := range sentinels {
					if got, want := errors.Is(err, sentinel), slices.Contains(c.want, sentinel); got != want {
						t.Errorf("%v: matches %q: %t, want %t", err, sentinel, got, want)
					}
				}
				s.store.Fail(nil)
			})
		})
	}
}

// A8: a lease that many goroutines use races.
func TestA08_ALeaseIsSafeForConcurrentUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tracer := &traces{}
		d := &tap{Driver: memlock.New()}
		c := newClient(t, d, &interlock.Options{Tracer: tracer})
		l := lock(t.Context(), t, c.Mutex("m"))
		ctx, fence := l.Context(), l.Fence()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if l.Fence() != fence || l.FenceOf("m") != fence || l.Context() != ctx {
					t.Error("changed")
				}
				_, _ = l.Err(), l.Until()
			})
			all.Go(func() { release(t, l) })
		}
		all.Wait()
		if n := len(d.made("release")); n != 1 {
			t.Errorf("%d releases were sent", n)
		}
		if n := len(tracer.holds()); n != 1 {
			t.Errorf("the hold ended %d times", n)
		}
	})
}

// A9: the owner is a value that the caller supplies, and that others guess.
func TestA09_TheLabelIsNoSecretAndNoIdentity(t *testing.T) {
	for _, label := range []string{"m", "worker", "", strings.Repeat("x", 2000), "a\"b\\c", "\xff"} {
		bubble(t, func(t *testing.T) {
			d := &tap{Driver: memlock.New()}
			o := &interlock.Options{Owner: label}
			a, b := newClient(t, d, o), newClient(t, d, o)
			release(t, lock(t.Context(), t, a.Mutex("m")))
			release(t, lock(t.Context(), t, b.Mutex("m")))
			ids := map[string]bool{}
			for _, call := range d.made("acquire") {
				if id := call.claim.ID; len(id) != 22 || ids[id] {
					t.Fatalf("ID %q: want 128 random bits in 22 characters, new each time", id)
				}
				ids[call.claim.ID] = true
			}
			l := lock(t.Context(), t, a.Mutex("m"))
			_, err := b.Mutex("m").TryLock(t.Context())
			matches(t, err, interlock.ErrHeld)
			for id := range ids {
				if strings.Contains(err.Error(), id) || strings.Contains(fmt.Sprintf("%+v", claims(t, d.Driver, "m")), id) {
					t.Error("a secret is shown")
				}
			}
			release(t, l)
		})
	}
}

// A10: durations that are zero, negative, tiny, huge or of the wrong unit.
func TestA10_AnyDurationIsRefusedOrKept(t *testing.T) {
	durations := []time.Duration{
		math.MinInt64, -time.Second, -1, 0, 1, time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
		time.Second, 15 * time.Second, time.Hour, 24 * time.Hour, 25 * time.Hour, math.MaxInt64 - 1, math.MaxInt64,
	}
	some := func() time.Duration { return durations[rand.IntN(len(durations))] }
	possible := 0
	for i := range 300 {
		ttl, grace, wait, least, most := some(), some(), some(), some(), some()
		if i < len(durations) {
			ttl = durations[i]
		}
		o := []interlock.LockOption{interlock.TTL(ttl)}
		if rand.IntN(2) == 0 {
			o = append(o, interlock.Grace(grace))
		}
		o = append(o, interlock.Wait(wait), interlock.MinHold(least), interlock.MaxHold(most))
		if o = o[:1+rand.IntN(len(o))]; i < len(durations) {
			o = o[:1]
		}
		what := fmt.Sprintf("%d of ttl %v, grace %v, wait %v, least %v, most %v", len(o), ttl, grace, wait, least, most)
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			c := must[*interlock.Client](t)(interlock.New(store, nil))
			m := c.Mutex("m", o...)
			l, err := m.Lock(t.Context())
			if m.Err() != nil {
				if err == nil || store.Calls() != 0 {
					t.Errorf("%s: %v with %d calls", what, err, store.Calls())
				}
				return
			}
			possible++
			if err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			if trust := time.Until(l.Until()); trust <= 0 || trust > ttl-2*time.Millisecond {
				t.Errorf("%s: trusted for %v", what, trust)
			}
			if until := claims(t, store, "m")[0].Until; until.IsZero() || time.Until(until) > ttl {
				t.Errorf("%s: kept for %v without renewal", what, time.Until(until))
			}
			release(t, l)
			store.EndSessions() // then there is nothing to keep for the least time
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if possible == 0 {
		t.Error("every combination was refused")
	}
	// A store without a maximum: nothing wraps around.
	bubble(t, func(t *testing.T) {
		c := newClient(t, limitless{memlock.New()}, nil)
		l := lock(t.Context(), t, c.Mutex("m", interlock.TTL(math.MaxInt64)))
		time.Sleep(time.Hour)
		if err := l.Err(); err != nil || time.Until(l.Until()) < time.Hour {
			t.Errorf("%v, until %v", err, l.Until())
		}
		release(t, l)
	})
}

// limitless is a store that takes any TTL.
type limitless struct{ *memlock.Driver }

func (d limitless) Traits() driver.Traits {
	traits := d.Driver.Traits()
	traits.MaxTTL = 0
	return traits
}

func (d limitless) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	asked := spec.TTL
	spec.TTL = min(asked, 24*time.Hour)
	s, err := d.Driver.Open(ctx, spec)
	return limitlessSession{s, asked}, err
}

type limitlessSession struct {
	driver.Session
	valid time.Duration
}

func (s limitlessSession) Valid() time.Duration { return s.valid }

func (s limitlessSession) Renew(ctx context.Context) (driver.Renewal, error) {
	r, err := s.Session.Renew(ctx)
	r.Valid = s.valid
	return r, err
}

// A11: re-entry gives the lease another time or another token, or forgets it.
func TestA11_ReentryNeitherShortensNorRenumbers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		m := c.RWMutex("m", interlock.Reentrant())
		outer := lock(t.Context(), t, m)
		fence := outer.Fence()
		stack := []*interlock.Lease{outer}
		for range 300 {
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
			until := outer.Until()
			if len(stack) == 1 || rand.IntN(2) == 0 && len(stack) < 10 {
				write := rand.IntN(2) == 0
				ctx := stack[len(stack)-1].Context()
				l, err := m.RLock(ctx)
				if write {
					release(t, l)
					l, err = m.Lock(ctx)
				}
				stack = append(stack, must[*interlock.Lease](t)(l, err))
				if write && l.Fence() != fence || interlock.Fence(l.Context(), "m") != fence {
					t.Fatalf("token %d, in context %d, want %d", l.Fence(), interlock.Fence(l.Context(), "m"), fence)
				}
			} else {
				i := 1 + rand.IntN(len(stack)-1) // in any order
				release(t, stack[i])
				stack = slices.Delete(stack, i, i+1)
			}
			if got := outer.Until(); outer.Err() != nil || outer.Fence() != fence || got.Before(until) {
				t.Fatalf("outer: %v, token %d of %d, until %v of %v", outer.Err(), outer.Fence(), fence, got, until)
			}
			if n := len(claims(t, store, "m")); n != 1 {
				t.Fatalf("%d claims", n)
			}
		}
		release(t, stack...)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims after the last", n)
		}
	})
}

// A12: the owner is a thread, which asynchronous code does not keep.
func TestA12_TheOwnerIsTheLeaseAndItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		m := c.Mutex("m", interlock.Reentrant())
		l := lock(t.Context(), t, m)
		// The same goroutine with another context owns nothing.
		_, err := m.TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		// Another goroutine with the lease's context does, and may release what it was handed.
		done := make(chan struct{})
		go func() {
			defer close(done)
			inner, err := m.TryLock(l.Context())
			if err != nil {
				t.Error(err)
				return
			}
			release(t, inner, l)
		}()
		<-done
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}

// A13: the reply to an acquire is lost, and its repetition finds the lock taken: by itself.
func TestA13_ALostReplyBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		d := &tap{Driver: store}
		lose := true
		d.after = func(op string, _ driver.Claim, err error) error {
			if op == "acquire" && lose {
				lose = false
				return errors.New("connection reset")
			}
			return err
		}
		c := newClient(t, d, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		l := lock(ctx, t, c.Mutex("m"))
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		release(t, l)
		lose = true
		_, err := c.Mutex("m").TryLock(ctx)
		matches(t, err, interlock.ErrUnavailable)
		time.Sleep(time.Second)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims a second after a try that was not answered", n)
		}
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
						t.Errorf("%v: %v", set, err)
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
				t.Errorf("%d claims of %s are kept", n, name)
			}
		}
		release(t, l)
	})
}

// A15: permits never come back, or come back twice.
func TestA15_PermitsComeBackOnceAlsoFromTheDead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const permits = 5
		store := memlock.New()
		watch := newClient(t, store, nil)
		free := func() (n int) {
			t.Helper()
			var leases []*interlock.Lease
			for {
				l, err := watch.Semaphore("s", permits).TryAcquire(t.Context(), 1)
				if err != nil {
					matches(t, err, interlock.ErrHeld)
					release(t, leases...)
					return len(leases)
				}
				leases = append(leases, l)
			}
		}
		for range 3 * permits {
			l := must[*interlock.Lease](t)(watch.Semaphore("s", permits).TryAcquire(t.Context(), 2))
			release(t, l, l)
			if n := free(); n != permits {
				t.Fatalf("%d of %d are free", n, permits)
			}
		}
		for _, kill := range []func(*memlock.Driver){
			func(d *memlock.Driver) { d.Stall() },       // nobody sees the death: the time is over
			func(d *memlock.Driver) { d.EndSessions() }, // the store sees it
		} {
			for range permits {
				d := store.Share()
				c := must[*interlock.Client](t)(interlock.New(d, nil))
				must[*interlock.Lease](t)(c.Semaphore("s", permits).Acquire(t.Context(), 1))
				kill(d)
				t.Cleanup(func() { d.EndSessions(); _ = c.Close() })
			}
			time.Sleep(15 * time.Second)
			if n := free(); n != permits {
				t.Fatalf("%d of %d are free a TTL after their holders died", n, permits)
			}
		}
	})
}

// A16: a semaphore over stores that cannot count together.
func TestA16_NoSemaphoreWhereTheStoreCannotCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.NewPersonality(memlock.Personality{NoCount: true})
		c := newClient(t, store, nil)
		s := c.Semaphore("s", 2)
		_, err := s.Acquire(t.Context(), 1)
		matches(t, err, errors.ErrUnsupported)
		matches(t, s.Err(), errors.ErrUnsupported)
		if n := store.Calls(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// A17: goroutines wait without number.
func TestA17_WaitersAreCappedAndLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const most, callers = 1000, 5000
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{MaxWaiters: most})
		l := lock(t.Context(), t, c.Mutex("m"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var waits []*attempt
		for range callers {
			waits = append(waits, background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) }))
		}
		synctest.Wait()
		refused := 0
		for _, w := range waits {
			if w.over() {
				refused++
				matches(t, w.err, interlock.ErrTooManyWaiters)
			}
		}
		if refused != callers-most {
			t.Errorf("%d were refused, want %d", refused, callers-most)
		}
		if n := len(claims(t, store, "m")); n != 1 {
			t.Errorf("%d claims, want the holder's, which is passed on", n)
		}
		cancel()
		for _, w := range waits {
			<-w.done
		}
		release(t, l)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims are left", n)
		}
	})
}

// A18: a release wakes the whole herd, or somebody asks all the time.
func TestA18_AReleaseWakesOneAndAFailingStoreIsSpared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const clients = 32
		store := memlock.New()
		l := lock(t.Context(), t, newClient(t, store, nil).Mutex("m"))
		var taps []*tap
		var waits []*attempt
		for range clients {
			d := &tap{Driver: store.Share()}
			c := newClient(t, d, nil)
			taps = append(taps, d)
			waits = append(waits, background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) }))
			synctest.Wait()
		}
		release(t, l)
		for _, w := range waits {
			release(t, w.wait(t))
		}
		synctest.Wait()
		for i, d := range taps {
			if a, w, r := len(d.made("acquire")), len(d.made("wait")), len(d.made("release", "requeue")); a != 1 || w != 1 || r != 1 {
				t.Errorf("client %d: %d acquires, %d waits, %d releases", i, a, w, r)
			}
		}
	})
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{Patience: time.Minute})
		release(t, lock(t.Context(), t, c.Mutex("m")))
		before := store.Calls()
		store.Fail(fmt.Errorf("connection refused: %w", driver.ErrNotSent))
		time.AfterFunc(10*time.Second, func() { store.Fail(nil) })
		release(t, lock(t.Context(), t, c.Mutex("m")))
		if n := store.Calls() - before; n > 50 {
			t.Errorf("%d calls in ten seconds of failure", n)
		}
	})
}

// A19: a context that was over before still locks.
func TestA19_AContextThatIsOverLocksNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		l := must[*interlock.Lease](t)(c.RWMutex("r").RLock(t.Context())) // there to be joined
		calls := store.Calls()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for call, err := range everyCall(over, c, "m") {
			if _, observing := strings.CutSuffix(call, "er"); !strings.HasSuffix(call, ".Err") && !observing && call != "Election.Observe" {
				matches(t, err, context.Canceled)
				if errors.Is(err, interlock.ErrHeld) || errors.Is(err, interlock.ErrUnavailable) {
					t.Errorf("%s: %v, although nobody was asked", call, err)
				}
			}
		}
		if joined, err := c.RWMutex("r").RLock(over); !errors.Is(err, context.Canceled) {
			t.Errorf("joined readers: %v", err)
			release(t, joined)
		}
		if n := store.Calls() - calls; n != 0 {
			t.Errorf("%d calls", n)
		}
		release(t, l)
	})
}

// A20: closing hangs, or leaves somebody behind who renews.
func TestA20_CloseIsBoundedAndLeavesNobody(t *testing.T) {
	for _, stall := range []bool{false, true} {
		bubble(t, func(t *testing.T) { // which panics if a goroutine is left
			d := &tap{Driver: memlock.New()}
			c := must[*interlock.Client](t)(interlock.New(d, nil))
			for i := range 20 {
				lock(t.Context(), t, c.Mutex(fmt.Sprint(i), interlock.Grace(time.Second)))
			}
			lock(t.Context(), t, c.Mutex("isolated", interlock.Isolated(), interlock.Grace(time.Second)))
			waits := []*attempt{
				background(func() (*interlock.Lease, error) { return c.Mutex("1").Lock(t.Context()) }),
				background(func() (*interlock.Lease, error) { return c.RWMutex("2").RLock(t.Context()) }),
			}
			synctest.Wait()
			if stall {
				defer d.Driver.Stall()()
				waits = append(waits, background(func() (*interlock.Lease, error) { return c.Mutex("asking").Lock(t.Context()) }))
				synctest.Wait()
			}
			start := time.Now()
			var ended atomic.Int32
			for _, w := range waits {
				go func() {
					<-w.done
					matches(t, w.err, interlock.ErrClosed)
					if time.Since(start) == 0 {
						ended.Add(1)
					}
				}()
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took, most := time.Since(start), 3*time.Second; took > most || !stall && took != time.Second {
				t.Errorf("stalled %t: took %v", stall, took)
			}
			if n := int(ended.Load()); n != len(waits) {
				t.Errorf("stalled %t: %d of %d waits ended at once", stall, n, len(waits))
			}
			renewals := len(d.made("renew"))
			time.Sleep(time.Hour)
			if n := len(d.made("renew")) - renewals; n != 0 {
				t.Errorf("stalled %t: %d renewals after Close", stall, n)
			}
			if err := c.Close(); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// A21: the unlock of a reader frees the writer or the other readers; leaving a read lock lets a writer in to another.
func TestA21_ReadersAndWritersLeaveForThemselves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		m := a.RWMutex("m", interlock.Reentrant())
		read := func(ctx context.Context) *interlock.Lease { return must[*interlock.Lease](t)(m.RLock(ctx)) }
		barred := func(when string) {
			t.Helper()
			if l, err := b.RWMutex("m").TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("%s, another writer: %v", when, err)
				release(t, l)
			}
		}
		one, another := read(t.Context()), read(t.Context())
		release(t, one)
		barred("one of two readers left")
		time.Sleep(10 * time.Minute)
		if another.Err() != nil {
			t.Errorf("a reader's lease is not renewed: %v", another.Err())
		}
		barred("a reader stayed for long")
		release(t, another)

		write := lock(t.Context(), t, m)
		inner := read(write.Context())
		release(t, inner)
		barred("a reader inside a writer left")
		inner = read(write.Context())
		release(t, write)
		barred("the writer left, a reader inside it did not")
		release(t, inner)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}

// A22: a fair line keeps dead waiters, or drops living ones.
func TestA22_DeadWaitersLeaveAndLivingOnesKeepTheirPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const waiters = 9
		store := memlock.New()
		l := lock(t.Context(), t, newClient(t, store, nil).Mutex("m"))
		order := make(chan int, waiters)
		var left sync.WaitGroup
		for i := range waiters {
			d := store.Share()
			c := must[*interlock.Client](t)(interlock.New(d, nil))
			ctx, cancel := context.WithCancel(t.Context())
			w := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(ctx) })
			synctest.Wait()
			dead := i%3 == 0
			if dead {
				resume := d.Stall()
				t.Cleanup(resume)
			}
			left.Go(func() {
				if <-w.done; w.err == nil {
					order <- i
					time.Sleep(time.Millisecond)
					release(t, w.lease)
				}
			})
			t.Cleanup(func() {
				cancel()
				left.Wait()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		before := claims(t, store, "m")
		time.Sleep(20 * time.Second)
		after := claims(t, store, "m")
		if len(after) != 1+waiters-waiters/3 {
			t.Fatalf("%d claims, more than a TTL after every third waiter died", len(after))
		}
		time.Sleep(10 * time.Minute)
		for i, c := range claims(t, store, "m") {
			if c.PublicID != after[i].PublicID || !slices.ContainsFunc(before, func(b driver.Holder) bool { return b.PublicID == c.PublicID && b.Since.Equal(c.Since) }) {
				t.Errorf("place %d was lost", i)
			}
		}
		start := time.Now()
		release(t, l)
		for _, want := range []int{1, 2, 4, 5, 7, 8} {
			if got := <-order; got != want {
				t.Errorf("waiter %d, want %d", got, want)
			}
		}
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("handed over in %v", took)
		}
	})
}
