package pglock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/worker"
)

// A change is judged by exclusion, tokens and expiry; all laws are for make proof.
func TestConformanceOfSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "-c", "fsync=on")
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		_, law, _ := strings.Cut(t.Name(), "/")
		if testing.Short() && !slices.Contains([]string{"Law03_OneSession", "Law05_Tokens", "Law08_Expiry", "Law11_NoOvertaking", "Also_Parallel"}, law) {
			t.Skip("a law that rows keeps: make proof")
		}
		return connected{h.again(), "session"}
	})
}

// connected is a harness for techniques whose locks live with connections.
type connected struct {
	h         *harness
	technique string
}

// unseen is a driver without its looks: the server shows less of a lock than the suite wants to see.
type unseen struct{ driver.Driver }

func (c connected) url() string { return c.h.server.URL() + "&technique=" + c.technique }

func (c connected) Prefix() string     { return c.h.Prefix() }
func (c connected) TTL() time.Duration { return c.h.TTL() }

func (c connected) Driver(t drivertest.T) driver.Driver {
	t.Helper()
	d, l := c.h.open(t, c.url())
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.h.lines[unseen{d}] = l
	return unseen{d}
}

func (c connected) Kill(t drivertest.T, d driver.Driver) { c.h.Kill(t, d) }
func (c connected) Restart(t drivertest.T)               { c.h.Restart(t) }
func (c connected) Calls(d driver.Driver) int            { return c.h.Calls(d) }
func (c connected) Budget() drivertest.Budget            { return c.h.Budget() }

func (c connected) Stall(t drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	return c.h.Stall(t, d, way)
}

func (c connected) Freeze(t drivertest.T, name string) (thaw func()) {
	w := worker.Start(t, c.url(), name, c.TTL())
	w.Stop(t)
	return w.Kill
}

func (c connected) Cannot(law string) string {
	switch law {
	case "Law14_LostNotice":
		return "a grant is the answer to a statement, and no connection loses that and lives"
	case "Also_Loss":
		return "the connections of a session end one by one, and the session goes on with the others"
	}
	return ""
}
