package sessions

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// A claim leaves once, whatever comes of the calls, and every Release says what the one that took
// it out found.
func TestAClaimLeavesOnce(t *testing.T) {
	var mu sync.Mutex
	for _, here := range []bool{false, true} {
		var d Departure
		calls, lost := 0, errors.New("no answer")
		release := func(answer error) (bool, error) {
			return d.Release(t.Context(), &mu, here, time.Minute, func(context.Context) error {
				calls++
				if answer == nil {
					mu.Lock()
					defer mu.Unlock()
					d.Left, d.Was = true, true
				}
				return answer
			})
		}
		if was, err := release(lost); was || !errors.Is(err, lost) || !d.Unsure {
			t.Errorf("without an answer: was held %v, %v, unsure %v; want that nobody knows", was, err, d.Unsure)
		}
		for range 2 {
			if was, err := release(nil); !was || err != nil || calls != 2 {
				t.Errorf("released: was held %v, %v, after %d calls; want that it was, after the second", was, err, calls)
			}
		}
	}
}

// Who gives up while another Release takes the claim out is told what that one found.
func TestAReleaseThatIsGivenUpSaysWhatIsKnown(t *testing.T) {
	var mu sync.Mutex
	var d Departure
	ctx, leave := context.WithCancel(t.Context())
	was, err := d.Release(ctx, &mu, false, time.Minute, func(context.Context) error {
		mu.Lock()
		d.Left, d.Was = true, true
		mu.Unlock()
		leave()
		return nil
	})
	if !was || err != nil {
		t.Errorf("was held %v, %v; want what is known", was, err)
	}
}
