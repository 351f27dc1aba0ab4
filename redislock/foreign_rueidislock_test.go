//go:build linux || darwin

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/interlock-go/interlock"
)

// rueidisLocker is a locker of rueidislock that takes so many of 2n-1 keys.
func (m meeting) rueidisLocker(t *testing.T, majority int32) rueidislock.Locker {
	t.Helper()
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{m.Addr()}},
		KeyMajority:    majority,
		TryNextAfter:   soon, // or it takes a busy machine for a key that is held
		NoLoopTracking: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// rueidislock keeps the name N at the keys rueidislock:0:N, rueidislock:1:N and so on. Ours meet it
// there: with one key as a Mutex, with several as a Multi of all of them.
func TestRueidislock(t *testing.T) {
	m := newMeeting(t)
	client := m.open(t, nil)
	for majority := int32(1); majority <= 2; majority++ {
		t.Run(fmt.Sprintf("majority of %d", 2*majority-1), func(t *testing.T) {
			t.Parallel()
			theirs := m.rueidisLocker(t, majority)
			name := fmt.Sprintf("job %d", majority)
			var keys []string
			for i := range 2*majority - 1 {
				keys = append(keys, fmt.Sprintf("rueidislock:%d:%s", i, name))
			}
			ours := client.Multi(keys)

			_, unlock, err := theirs.TryWithContext(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			var held *interlock.HeldError
			if _, err := ours.TryLock(t.Context()); !errors.As(err, &held) || held.Holder == nil || !held.Holder.Foreign {
				t.Errorf("a try while rueidislock holds: %v, want it held by another program", err)
			}
			waiting := make(chan *interlock.Lease, 1)
			go func() {
				defer close(waiting)
				ctx, cancel := context.WithTimeout(t.Context(), ages)
				defer cancel()
				lease, err := ours.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				waiting <- lease
			}()
			m.stand(t, keys[0], 2)
			unlock()
			lease := <-waiting
			if lease == nil {
				return
			}

			if _, _, err := theirs.TryWithContext(t.Context(), name); !errors.Is(err, rueidislock.ErrNotLocked) {
				t.Errorf("rueidislock tries while ours hold: %v, want %v", err, rueidislock.ErrNotLocked)
			}
			got := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), ages)
				defer cancel()
				_, unlock, err := theirs.WithContext(ctx, name)
				if err == nil {
					unlock()
				}
				got <- err
			}()
			m.release(t, lease)
			if err := <-got; err != nil {
				t.Errorf("rueidislock after ours have released: %v", err)
			}
		})
	}
}
