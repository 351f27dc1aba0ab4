package versioned_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/examples/versioned"
	"github.com/interlock-go/interlock/examples/versioned/versionedtest"
)

func newHarness() *versionedtest.Harness {
	return versionedtest.New(func(t versioned.Table) driver.Driver { return versioned.New(t) })
}

// The example keeps every law, in virtual time.
func TestVersioned(t *testing.T) {
	drivertest.RunBubble(t, func(*testing.T) drivertest.Harness { return newHarness() })
}

// A swap that arrives after its Acquire was given up and released takes the lock for nobody.
func TestASwapThatComesAfterTheReleaseDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness()
		d := h.Driver(t)
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c := driver.Claim{Name: "n", ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
		deliver := h.Straggle(t, d, 1) // the swap behind the load
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if g, err := s.Acquire(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire while the swap is under way: %+v, %v", g, err)
		}
		if held, err := s.Release(t.Context(), c); held || err != nil {
			t.Fatalf("Release: %v, %v", held, err)
		}
		if !deliver() {
			t.Fatal("nothing was held")
		}
		synctest.Wait()
		switch l, err := d.(driver.Inspector).Line(t.Context(), "n"); {
		case err != nil:
			t.Error(err)
		case len(l.Claims) > 0:
			t.Errorf("a swap straggled in after the Release: %+v", l.Claims)
		}
	})
}
