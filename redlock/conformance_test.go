package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/redlock"
)

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

// harness is of a set of masters, of which some may not be there to be restarted. A handoff may
// cost one more where the next claim was given some masters before the others and must write its
// token back, and yet one more where a master does not know the script for it: TestRoundTrips
// counts exactly.
//
// An answer may take a third of the TTL, however slow the machine.
func harness(set, there []*servertest.Server, ttl time.Duration) *redistest.Harness {
	return redistest.NewHarness(redistest.Store{
		URL: urlOf(addrs(set)) + patient, TTL: ttl, Together: true,
		Budget: drivertest.Budget{Acquire: 1, Release: 1, Handoff: 3},
		Open:   func(t drivertest.T, b *redistest.Proxies) driver.Driver { return openOver(t, b, set) },
		Restart: func(ctx context.Context) error {
			for _, s := range there {
				if err := s.Restart(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// openOver opens masters over proxies. On a new connection the driver asks which server it is; that
// does not count.
func openOver(t drivertest.T, b *redistest.Proxies, set []*servertest.Server) *redlock.Driver {
	b.Own = []string{"INFO"}
	var wires []string
	for _, s := range set {
		wires = append(wires, b.To(s.Addr()).Addr())
	}
	return open(t, urlOf(wires)+patient)
}

const patient = "?node_timeout=5s"

func TestConformanceOverThree(t *testing.T) { conform(t, 3) }

func TestConformanceOverFive(t *testing.T) {
	if testing.Short() {
		t.Skip("the same laws with more masters: make proof")
	}
	conform(t, 5)
}

func conform(t *testing.T, n int) {
	t.Helper()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		set := startMasters(t, n, redistest.Durable...)
		return harness(set, set, 2*time.Second)
	})
}
