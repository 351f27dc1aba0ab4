package interlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A lease says why it was lost: an operator broke it, or it was not he.
func TestABreakReadsAsBroken(t *testing.T) {
	for _, c := range []struct {
		fate   string
		loses  func(t *testing.T, store *memlock.Driver, l *interlock.Lease)
		broken bool
	}{
		{"marked", func(t *testing.T, store *memlock.Driver, l *interlock.Lease) { breaks(t, store, l, false) }, true},
		{"broken with now", func(t *testing.T, store *memlock.Driver, l *interlock.Lease) { breaks(t, store, l, true) }, true},
		{"lost by the store", func(_ *testing.T, store *memlock.Driver, _ *interlock.Lease) { store.Lose("m") }, false},
		{"session ended", func(_ *testing.T, store *memlock.Driver, _ *interlock.Lease) { store.EndSessions() }, false},
		{"not renewed", func(_ *testing.T, store *memlock.Driver, _ *interlock.Lease) {
			resume := store.Stall()
			time.Sleep(time.Minute)
			resume()
		}, false},
	} {
		t.Run(c.fate, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := memlock.New()
				l := hold(t, newClient(t, store, nil), "m")
				c.loses(t, store, l)
				<-l.Context().Done()
				for what, err := range map[string]error{"Err": l.Err(), "the context's cause": context.Cause(l.Context()), "Release": l.Release()} {
					if !errors.Is(err, interlock.ErrLost) {
						t.Errorf("%s: %s is %v, want ErrLost", c.fate, what, err)
					}
					if errors.Is(err, driver.ErrBroken) != c.broken {
						t.Errorf("%s: %v, want an error that matches %q: %t", c.fate, err, driver.ErrBroken, c.broken)
					}
				}
			})
		})
	}
}

// breaks is what an operator does.
func breaks(t *testing.T, store *memlock.Driver, l *interlock.Lease, now bool) {
	t.Helper()
	if err := store.Break(t.Context(), "m", claims(t, store, "m")[0].PublicID, l.Fence(), now); err != nil {
		t.Fatal(err)
	}
}

// What the store says by itself, that an operator broke the claim, overtakes the answer that grants
// it: the wait is over.
func TestABreakInTheMomentOfTheGrantEndsTheWait(t *testing.T) {
	for _, call := range []string{"acquire", "wait"} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			s := &telling{call: call, lost: make(chan driver.Loss)}
			c := newClient(t, changed{store, func(of everySession) driver.Session {
				s.everySession = of
				return s
			}}, nil)
			var before *interlock.Lease
			if call == "wait" {
				before = hold(t, newClient(t, store.Share(), nil), "m")
			}
			a := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
			synctest.Wait()
			if before != nil {
				release(t, before)
			}
			<-a.done
			if a.err == nil {
				t.Fatalf("%s: locked all the same, by claim %d, want driver.ErrBroken", call, len(s.granted))
			}
			matches(t, a.err, driver.ErrBroken)
		})
	}
}

// telling is a session that says of the first claim that is granted, before it answers so, that it
// was broken.
type telling struct {
	everySession
	call    string
	lost    chan driver.Loss
	granted []string
}

func (s *telling) tells(call, id string, g driver.Grant) driver.Grant {
	if !g.Held {
		return g
	}
	if s.granted = append(s.granted, id); call == s.call && len(s.granted) == 1 {
		s.lost <- driver.Loss{ID: id, Err: driver.ErrBroken}
		s.lost <- driver.Loss{} // when this is taken, the one before has been heard
	}
	return g
}

func (s *telling) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := s.everySession.Acquire(ctx, c)
	return s.tells("acquire", c.ID, g), err
}

func (s *telling) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := s.everySession.Wait(ctx, c)
	return s.tells("wait", c.ID, g), err
}

func (s *telling) Lost() <-chan driver.Loss { return s.lost }
