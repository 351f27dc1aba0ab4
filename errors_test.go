package interlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A7: held by another, could not tell, lost, and no longer held are one error.
func TestA07_EachFaultHasItsError(t *testing.T) {
	sentinels := []error{
		interlock.ErrHeld, interlock.ErrLost, interlock.ErrReleased, interlock.ErrDeadlock, interlock.ErrUncertain,
		interlock.ErrUnavailable, interlock.ErrClosed, interlock.ErrTooManyWaiters, interlock.ErrMaxHold,
		context.Canceled, context.DeadlineExceeded, errors.ErrUnsupported, driver.ErrRefused, driver.ErrName, driver.ErrBroken,
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
		}, []error{driver.ErrRefused, driver.ErrName}},
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
