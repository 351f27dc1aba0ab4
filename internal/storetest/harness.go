package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/links"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/worker"
)

// Server is what a [Harness] needs of a server: of one that was started here, or of somebody else's.
type Server interface {
	Addr() string
	Restart(ctx context.Context) error
}

// Store is what a [Harness] needs to know of a store on one server.
type Store struct {
	Server   Server
	URL      string                                         // by which another process opens it
	Open     func(t drivertest.T, url string) driver.Driver // nil: by its URL
	Request  func(packet []byte) bool                       // see links.Links
	Requests func(packet []byte) int                        // see links.Links
	Notice   func(packet []byte) bool                       // see links.Links
	TTL      time.Duration                                  // 0 for a second
	Budget   drivertest.Budget                              // what the store promises
	Cannot   func(law string) string                        // why a law cannot be tried as a whole; nil where every one can
	Unseen   bool                                           // its drivers are tried without their looks: see Cannot
}

// Harness is a store for the conformance suite. Each driver is over a wire of its own.
type Harness struct {
	*links.Links
	store  Store
	prefix string
}

// unseen is a driver without what it may have beside the contract.
type unseen struct{ driver.Driver }

var harnesses atomic.Int64

// NewHarness makes a harness. Several may have the same server.
func NewHarness(s Store) *Harness {
	h := &Harness{Links: links.New(), store: s, prefix: fmt.Sprintf("suite/%d/", harnesses.Add(1))}
	h.Request, h.Requests, h.Notice = s.Request, s.Requests, s.Notice
	return h
}

// Prefix is one that no other harness of the process has.
func (h *Harness) Prefix() string { return h.prefix }

// TTL is the store's.
func (h *Harness) TTL() time.Duration { return cmp.Or(h.store.TTL, time.Second) }

// Budget is the store's.
func (h *Harness) Budget() drivertest.Budget { return h.store.Budget }

// Driver opens the store over a wire.
func (h *Harness) Driver(t drivertest.T) driver.Driver {
	t.Helper()
	w := h.Lay(t, h.store.Server.Addr())
	url, open := strings.Replace(h.store.URL, h.store.Server.Addr(), w.Addr(), 1), h.store.Open
	if open == nil {
		open = opens
	}
	d := open(t, url)
	if h.store.Unseen {
		d = unseen{d}
	}
	h.Belong(d, w)
	return d
}

func opens(t drivertest.T, url string) driver.Driver {
	t.Helper()
	// A server that has no time says nothing of the driver: no law is of how soon it answers.
	d, err := opening.Within(context.Background(), patience, func(ctx context.Context) (driver.Driver, error) { return driver.OpenURL(ctx, url) })
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

// Restart restarts the server, in a minute at most.
func (h *Harness) Restart(t drivertest.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.store.Server.Restart(ctx); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

// Freeze stops a [worker.Worker].
func (h *Harness) Freeze(t drivertest.T, name string) (thaw func()) {
	t.Helper()
	w := worker.Start(t, h.store.URL, name, h.TTL())
	w.Stop(t)
	return w.Kill
}

// Cannot is the store's.
func (h *Harness) Cannot(law string) string {
	if h.store.Cannot == nil {
		return ""
	}
	return h.store.Cannot(law)
}

// OfConnections is what cannot be tried of a store whose locks live with connections.
func OfConnections(law string) string {
	switch law {
	case "Law14_LostNotice":
		return "a grant is the answer to a statement, and no connection loses that and lives"
	case "Law15_Break", "Also_Inspector", "Also_Shown", "Also_Watch", "Also_Told":
		return "the server shows less of a lock than the suite wants to see: its looks have tests of their own"
	case "Also_Loss":
		return "the connections of a session end one by one, and the session goes on with the others"
	}
	return ""
}

// InShort are the laws that judge every change: one technique of a store has all of them there, and the others these.
func InShort(names ...string) []drivertest.Law {
	laws := drivertest.Laws()
	if testing.Short() {
		laws = slices.DeleteFunc(laws, func(l drivertest.Law) bool { return !slices.Contains(names, l.Name) })
	}
	return laws
}
