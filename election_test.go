package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func TestElection_LeadReturnsWhatTheLeaderReturned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, _ := two(t)
		elsewhere := &interlock.Error{Op: "do", Name: "another lock", Err: interlock.ErrLost}
		for _, want := range []error{nil, errors.New("mine"), elsewhere, interlock.ErrClosed} {
			runs := 0
			got := a.Election("e").Lead(t.Context(), func(ctx context.Context) error {
				if runs++; runs > 1 {
					t.Errorf("%v: ran again", want)
					return nil
				}
				return want
			})
			if got != want { //nolint:errorlint // exactly what fn returned
				t.Errorf("%v, want %v", got, want)
			}
		}
		if n := len(claims(t, store, "e")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}

func TestElection_StandsAgainAfterALossWhenFnHasReturned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const grace, slow = 2 * time.Second, 5 * time.Second
		store, a, b := two(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		type term struct {
			fence      uint64
			start, end time.Time
		}
		var terms []term
		done := make(chan error)
		go func() {
			done <- a.Election("e", interlock.Grace(grace)).Lead(ctx, func(ctx context.Context) error {
				now := term{fence: interlock.Fence(ctx, "e"), start: time.Now()}
				<-ctx.Done()
				time.Sleep(slow)
				now.end = time.Now()
				terms = append(terms, now)
				return ctx.Err()
			})
		}()
		synctest.Wait()
		elected := make(chan time.Time)
		go func() {
			err := b.Election("e").Lead(t.Context(), func(context.Context) error { elected <- time.Now(); return nil })
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		lost := time.Now()
		store.Lose("e")
		if got := (<-elected).Sub(lost); got != grace {
			t.Errorf("the next was elected after %v, want the grace of %v", got, grace)
		}
		time.Sleep(time.Minute)
		cancel()
		err := <-done
		matches(t, err, context.Canceled)
		if errors.Is(err, interlock.ErrLost) {
			t.Errorf("the last term was not lost: %v", err)
		}
		if len(terms) != 2 || terms[1].fence <= terms[0].fence || terms[1].start.Before(terms[0].end) || terms[1].start.Sub(terms[0].end) > time.Second {
			t.Errorf("terms %+v", terms)
		}
	})
}

func TestElection_GivesUpWhenItsContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		defer lock(t.Context(), t, b.Mutex("e")).Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := a.Election("e").Lead(ctx, func(context.Context) error { t.Error("ran"); return nil })
		matches(t, err, context.DeadlineExceeded, interlock.ErrHeld)
		synctest.Wait()
		if n := len(claims(t, store, "e")); n != 1 {
			t.Errorf("%d claims", n)
		}
		// And between two terms.
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		err = a.Election("other").Lead(ctx, func(ctx context.Context) error {
			store.Lose("other")
			cancel()
			return context.Cause(ctx)
		})
		matches(t, err, context.Canceled, interlock.ErrLost)
	})
}

func TestElection_EveryLeaderHasAClaimOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		var all sync.WaitGroup
		seen := map[string]bool{}
		for i := range 5 {
			all.Go(func() {
				note := fmt.Sprint("candidate ", i)
				err := c.Election("e", interlock.Note(note)).Lead(t.Context(), func(ctx context.Context) error {
					start := time.Now()
					leader := must[interlock.Leader](t)(c.Election("e").Leader(ctx))
					if leader.Owner.Name != "ann" || leader.Note != note || leader.Fence != interlock.Fence(ctx, "e") || !leader.Since.Equal(start) {
						t.Errorf("%s: %+v", note, leader)
					}
					seen[claims(t, store, "e")[0].PublicID] = true
					time.Sleep(time.Millisecond)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(seen) != 5 {
			t.Errorf("%d claims for 5 leaders", len(seen))
		}
		if leader := must[interlock.Leader](t)(c.Election("e").Leader(t.Context())); leader != (interlock.Leader{}) {
			t.Errorf("nobody leads: %+v", leader)
		}
		store.Fail(errors.New("refused"))
		_, err := c.Election("e").Leader(t.Context())
		matches(t, err, interlock.ErrUnavailable)
		store.Fail(nil)
	})
}

// opaque is a store that can neither be looked into nor watched; blind is one that cannot be
// watched.
type (
	opaque struct{ driver.Driver }
	blind  struct {
		driver.Driver
		driver.Inspector
	}
)

func TestElection_OnAStoreThatCannotBeLookedInto(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, opaque{memlock.New()}, nil)
		_, err := c.Election("e").Leader(t.Context())
		matches(t, err, errors.ErrUnsupported)
		n := 0
		for _, err := range c.Election("e").Observe(t.Context()) {
			matches(t, err, errors.ErrUnsupported)
			n++
		}
		if n != 1 {
			t.Errorf("%d values, want one error", n)
		}
		if err := c.Election("e").Lead(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

func TestElection_ObserveTellsOfEveryChange(t *testing.T) {
	for _, watched := range []bool{true, false} {
		bubble(t, func(t *testing.T) { // which panics if an observer leaves somebody behind
			store, a, b := two(t)
			var d driver.Driver = store.Share()
			if !watched {
				d = blind{d, store}
			}
			observer := newClient(t, d, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := make(chan string)
			go func() {
				defer close(seen)
				for leader, err := range observer.Election("e").Observe(ctx) {
					if err != nil {
						seen <- err.Error()
						matches(t, err, context.Canceled)
						continue
					}
					seen <- leader.Owner.Name + leader.Note
				}
			}()
			expect := func(want string) {
				t.Helper()
				if got := <-seen; got != want {
					t.Errorf("watched %t: %q, want %q", watched, got, want)
				}
			}
			expect("")
			l := lock(t.Context(), t, a.Mutex("e"))
			expect("ann")
			next := background(func() (*interlock.Lease, error) { return b.Mutex("e", interlock.Note("!")).Lock(t.Context()) })
			synctest.Wait() // a candidate is no change
			release(t, l)
			expect("bob!")
			release(t, next.wait(t))
			expect("")
			cancel()
			expect(`interlock: observe "e": context canceled`)
			if got, ok := <-seen; ok {
				t.Errorf("after the error: %q", got)
			}
			for _, err := range observer.Election("e").Observe(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				break // early
			}
		})
	}
}

// What Observe ends with says whether the store does not answer or refuses, whether it tells of
// changes or is asked; and so does Leader.
func TestElection_ObserveSaysWhatFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		for _, d := range []driver.Driver{store, blind{store, store}} {
			c := newClient(t, d, nil)
			for why, unreachable := range map[error]bool{errReset: true, fmt.Errorf("%w: no right to read", driver.ErrRefused): false} {
				store.Fail(why)
				_, looked := c.Election("e").Leader(t.Context())
				for _, err := range append(observed(t.Context(), c), looked) {
					matches(t, err, why)
					if errors.Is(err, interlock.ErrUnavailable) != unreachable {
						t.Errorf("%T: %v, want an error of a store that is unavailable: %t", d, err, unreachable)
					}
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				for _, err := range observed(ended, c) {
					matches(t, err, context.Canceled)
					if errors.Is(err, interlock.ErrUnavailable) {
						t.Errorf("%T: %v, want the end of the context alone", d, err)
					}
				}
				store.Fail(nil)
			}
		}
	})
}

// observed is what an Observe yields whose first look fails.
func observed(ctx context.Context, c *interlock.Client) (yielded []error) {
	for _, err := range c.Election("e").Observe(ctx) {
		yielded = append(yielded, err)
	}
	return yielded
}

func TestElection_EndsWithTheClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := must[*interlock.Client](t)(interlock.New(memlock.New(), nil))
		led, waited := make(chan error), make(chan error)
		go func() {
			led <- c.Election("e").Lead(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		}()
		synctest.Wait()
		go func() { waited <- c.Election("e").Lead(t.Context(), func(context.Context) error { return nil }) }()
		synctest.Wait()
		go func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		matches(t, <-waited, interlock.ErrClosed)
		matches(t, <-led, interlock.ErrClosed, interlock.ErrLost)
	})
}

// zoned is a store that tells each time in a zone of its own making, as what is decoded from text
// is.
type zoned struct {
	driver.Driver
	driver.Inspector
}

func (d zoned) Line(ctx context.Context, name string) (driver.Line, error) {
	l, err := d.Inspector.Line(ctx, name)
	for i := range l.Claims {
		zone := time.FixedZone("", 19800)
		l.Claims[i].Since, l.Claims[i].Owner.Start = l.Claims[i].Since.In(zone), l.Claims[i].Owner.Start.In(zone)
	}
	return l, err
}

func TestElection_ObserveComparesMomentsNotZones(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, _ := two(t)
		l := lock(t.Context(), t, a.Mutex("e"))
		theirs := store.Share()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		leaders := 0
		for _, err := range newClient(t, zoned{theirs, theirs}, nil).Election("e").Observe(ctx) {
			if err == nil {
				leaders++
			}
		}
		if leaders != 1 {
			t.Errorf("the same leader was yielded %d times", leaders)
		}
		release(t, l)
	})
}

// Work that is done is not done again because the leadership was lost meanwhile.
func TestElection_WhoReturnedNilLeadsNoMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		ran := 0
		err := c.Election("e").Lead(t.Context(), func(ctx context.Context) error {
			if ran++; ran == 1 {
				store.Lose("e")
				<-ctx.Done()
			}
			return nil
		})
		matches(t, err, interlock.ErrLost)
		if ran != 1 {
			t.Errorf("fn ran %d times", ran)
		}
	})
}
