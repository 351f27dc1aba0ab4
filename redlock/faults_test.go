package redlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Laws that a majority must keep as well as all.
var majorityLaws = []string{
	"Law01_Rule", "Law04_OnceHeld", "Law05_Tokens", "Law06_WakeUp", "Law08_Expiry", "Law13_NothingStays", "Law15_Break",
	"Also_Parallel",
}

// limp tries the laws on five masters after something has happened to them, which says which are
// there all the same.
func limp(t *testing.T, happens func(t *testing.T, set []*servertest.Server) (there []*servertest.Server)) {
	t.Helper()
	redistest.Try(t, majorityLaws, func(t *testing.T) drivertest.Harness {
		set := startMasters(t, 5, redistest.Durable...)
		d := open(t, urlOf(addrs(set))+patient) // which founds the set
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		there := happens(t, set)
		h := harness(set, there, 4*time.Second)
		if len(there) < len(set) {
			return some{Harness: h}
		}
		return h
	})
}

// some is a harness of masters that are not all there. Whether those that are away forget anything
// when they restart nobody knows, so the driver says that claims don't survive a restart; that they
// do when the others are restarted is no fault of it.
type some struct {
	*redistest.Harness
	Restart struct{} // hides the method: no law restarts the store
}

func TestConformanceWithTwoOfFiveKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("laws with masters that are killed: make proof")
	}
	limp(t, func(t *testing.T, set []*servertest.Server) []*servertest.Server {
		for _, s := range set[1:3] {
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		return []*servertest.Server{set[0], set[3], set[4]}
	})
}

func TestConformanceWithOneOfFivePaused(t *testing.T) {
	if testing.Short() {
		t.Skip("laws with masters that are paused: make proof")
	}
	limp(t, func(t *testing.T, set []*servertest.Server) []*servertest.Server {
		if err := set[2].Pause(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = set[2].Resume() })
		return slices.Delete(slices.Clone(set), 2, 3)
	})
}

// The one that has forgotten has no vote for a minute, which is longer than any law takes.
func TestConformanceWithOneOfFiveWithoutMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("laws with masters that come back empty: make proof")
	}
	limp(t, func(t *testing.T, set []*servertest.Server) []*servertest.Server {
		set[3].MustDo(t, "FLUSHALL")
		if err := set[3].Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		return set
	})
}
