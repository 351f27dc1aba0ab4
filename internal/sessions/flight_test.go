package sessions

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A caller who goes leaves the call under way, and the next one for the claim waits for it.
func TestACallFollowsTheOneBeforeAlsoWhenItsCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight
		var mu sync.Mutex
		var order []string
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		err := f.Fly(ctx, &mu, false, time.Minute, func(ctx context.Context) error {
			if end, ok := ctx.Deadline(); !ok || time.Until(end) != time.Minute {
				t.Errorf("a call has until %v, want the minute that it was given", end)
			}
			time.Sleep(10 * time.Second)
			order = append(order, "acquire")
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller got %v, want its own deadline", err)
		}
		since := time.Now()
		if err := f.Fly(t.Context(), &mu, false, time.Minute, func(context.Context) error {
			order = append(order, "release")
			return nil
		}); err != nil {
			t.Error(err)
		}
		if took := time.Since(since); took != 9*time.Second || len(order) != 2 || order[0] != "acquire" {
			t.Errorf("after %v: %v, want the release behind the acquire, after 9s", took, order)
		}
	})
}

// Where calls are made right here, one whose request goes on by itself lands when that is over.
func TestACallLandsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight
		var mu sync.Mutex
		over := make(chan struct{})
		gone := errors.New("gone")
		err := f.Fly(t.Context(), &mu, true, time.Minute, func(context.Context) error {
			time.AfterFunc(time.Second, func() { close(over) })
			return &Underway{Cause: gone, Over: over}
		})
		if !errors.Is(err, gone) {
			t.Errorf("got %v, want why the caller is back", err)
		}
		since := time.Now()
		f.Rest(t.Context(), &mu)
		if took := time.Since(since); took != time.Second {
			t.Errorf("the claim was at rest after %v, want a second: its request was under way", took)
		}
		mu.Lock()
		defer mu.Unlock()
		if f.Landing() != nil {
			t.Error("a call is under way after the claim came to rest")
		}
	})
}
