package mysqllock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/worker"
)

func TestConformanceOfSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return connected{h.again(), "session"} }, inShort("Law03_OneSession", "Law05_Tokens", "Law08_Expiry", "Law11_NoOvertaking", "Also_Parallel")...)
}

// inShort are the laws that judge every change: rows has all of them there, and the others exclusion, tokens and expiry.
func inShort(names ...string) []drivertest.Law {
	laws := drivertest.Laws()
	if testing.Short() {
		laws = slices.DeleteFunc(laws, func(l drivertest.Law) bool { return !slices.Contains(names, l.Name) })
	}
	return laws
}

// connected is a harness for techniques whose locks live with connections.
type connected struct {
	h         *harness
	technique string
}

// unseen is a driver without its looks: see Cannot.
type unseen struct{ driver.Driver }

func (c connected) url() string {
	return c.h.server.URL() + "?max_waiting=200&technique=" + c.technique
}

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

// Budget is that of the contract, but for who is not in line yet and looks. With a row lock it has one more that looks for the row,
// one that makes it for a new name, and one that draws the token.
func (c connected) Budget() drivertest.Budget {
	if c.technique == "rowlock" {
		return drivertest.Budget{Acquire: 4, Release: 1, Handoff: 2}
	}
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 2}
}

func (c connected) Stall(t drivertest.T, d driver.Driver, way drivertest.Way) (heal func()) {
	return c.h.Stall(t, d, way)
}

func (c connected) Straggle(t drivertest.T, d driver.Driver, n int) (deliver func() bool) {
	return c.h.Straggle(t, d, n)
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
	case "Law15_Break", "Also_Inspector", "Also_Shown", "Also_Watch", "Also_Told":
		return "the server shows less of a lock than the suite wants to see: its looks have tests of their own"
	case "Also_Loss":
		return "the connections of a session end one by one, and the session goes on with the others"
	}
	return ""
}
