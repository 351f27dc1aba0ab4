package gather

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Three masters answer after 1, 2 and 10 s. Who needs two of them waits for the third as long as
// patience says.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for what, q := range map[string]struct {
		patience, ends time.Duration
		enough         int
		all            bool
		took           time.Duration
		heard          int
	}{
		"all matter":                 {time.Second, time.Hour, 4, true, 10 * time.Second, 3},
		"the last one is late":       {time.Second, time.Hour, 2, false, 3 * time.Second, 2},
		"the last one is in time":    {9 * time.Second, time.Hour, 2, true, 10 * time.Second, 3},
		"nobody waits for any other": {0, time.Hour, 1, false, time.Second, 1},
		"nobody waits any more":      {time.Second, 1500 * time.Millisecond, 4, false, 1500 * time.Millisecond, 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), q.ends)
				defer cancel()
				began, heard := time.Now(), 0
				all := Answers(ctx, 3, q.patience, func(i int) time.Duration {
					after := []time.Duration{time.Second, 10 * time.Second, 2 * time.Second}[i]
					time.Sleep(after)
					return after
				}, func(i int, after time.Duration) bool {
					if heard++; time.Since(began) != after {
						t.Errorf("master %d is heard after %v, want %v", i, time.Since(began), after)
					}
					return heard >= q.enough
				})
				took := time.Since(began)
				time.Sleep(10 * time.Second) // for those that nobody waits for
				if all != q.all || took != q.took || heard != q.heard {
					t.Errorf("all %v after %v with %d answers, want %v after %v with %d", all, took, heard, q.all, q.took, q.heard)
				}
			})
		})
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if slept := Sleep(ctx, 59*time.Second); !slept || time.Since(began) != 59*time.Second {
			t.Errorf("slept %v for %v, want true for 59s", slept, time.Since(began))
		}
		if slept := Sleep(ctx, time.Hour); slept || time.Since(began) != time.Minute {
			t.Errorf("slept %v until %v after the beginning, want false when the context has ended", slept, time.Since(began))
		}
	})
}
