package versioned_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/examples/versioned"
)

// A swap that arrives after its Acquire was given up and released takes the lock for nobody.
func TestASwapThatComesAfterTheReleaseDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &slow{Memory: new(versioned.Memory)}
		table.swaps.Store(1)
		d := versioned.New(&link{table: table})
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c := driver.Claim{Name: "n", ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if g, err := s.Acquire(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire while the swap is under way: %+v, %v", g, err)
		}
		if held, err := s.Release(t.Context(), c); held || err != nil {
			t.Fatalf("Release: %v, %v", held, err)
		}
		time.Sleep(time.Second) // the swap arrives
		switch l, err := d.Line(t.Context(), "n"); {
		case err != nil:
			t.Error(err)
		case len(l.Claims) > 0:
			t.Errorf("a swap straggled in after the Release: %+v", l.Claims)
		}
	})
}

// slow is a table to which the first swaps are under way for half a second.
type slow struct {
	*versioned.Memory
	swaps atomic.Int64
}

func (s *slow) CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (bool, error) {
	if s.swaps.Add(-1) >= 0 {
		time.Sleep(time.Second / 2)
	}
	return s.Memory.CompareAndSwap(ctx, name, value, version)
}
