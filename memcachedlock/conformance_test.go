package memcachedlock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/links"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
	_ "github.com/interlock-go/interlock/memcachedlock"
)

func TestMain(m *testing.M) {
	worker.Work()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // each driver says what it is worth: TestItIsForEfficiency
	m.Run()
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	for _, law := range drivertest.Laws() { // side by side: they wait for times of whole seconds, mostly
		t.Run(law.Name, func(t *testing.T) {
			t.Parallel()
			law.Try(t, newHarness(s))
		})
	}
}

// harness is a server for the conformance suite. Each driver is over a wire of its own.
type harness struct {
	*links.Links
	s      *servertest.Server
	prefix string
}

var harnesses atomic.Int64

func newHarness(s *servertest.Server) *harness {
	h := &harness{Links: links.New(), s: s, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1))}
	h.Request = func(p []byte) bool { return !bytes.HasPrefix(p, []byte("stats")) } // which a new connection asks
	return h
}

// unseen is a driver without its looks: see Cannot.
type unseen struct{ driver.Driver }

func (h *harness) Driver(t drivertest.T) driver.Driver {
	t.Helper()
	w := h.Lay(t, h.s.Addr())
	d, err := driver.OpenURL(context.Background(), "memcached://"+w.Addr())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	h.Belong(unseen{d}, w)
	return unseen{d}
}

func (h *harness) Prefix() string     { return h.prefix }
func (h *harness) TTL() time.Duration { return 3 * time.Second }

// Budget: a handoff is the release, the look that finds it and the attempt; and a look that was
// under way.
func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 4}
}

func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	t.Helper()
	w := worker.Start(t, h.s.URL(), name, h.TTL())
	w.Stop(t)
	return w.Kill
}

func (h *harness) Cannot(law string) string {
	switch law {
	case "Law15_Break", "Also_Inspector", "Also_Shown", "Also_Watch":
		return "a server has who holds and nobody who waits: its looks have tests of their own"
	case "Also_Loss":
		return "claims have times of their own: the store ends no session"
	}
	return ""
}
