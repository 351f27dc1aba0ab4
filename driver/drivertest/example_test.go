package drivertest_test //nolint:testableexamples // Run needs the t of a test; TestTheTinyHarness does the same and is run

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/memlock"
)

// tiny is the least that a harness can be. The laws that need more are in Cannot, until the harness
// learns it.
type tiny struct {
	store  *memlock.Driver // the test server
	prefix string
}

func newTiny(*testing.T) drivertest.Harness {
	// Start the server here and stop it with t.Cleanup. With a prefix of its own each law can use
	// the same server.
	return tiny{store: memlock.New(), prefix: "suite-" + driver.NewID() + "/"}
}

func (h tiny) Driver(drivertest.T) driver.Driver { return h.store.Share() } // connect once more
func (h tiny) Prefix() string                    { return h.prefix }
func (h tiny) TTL() time.Duration                { return time.Second }

func (h tiny) Cannot(law string) string {
	switch law {
	case "Law02_Idempotence", "Law13_NothingStays", "Also_Contexts", "Also_Outcomes", "Also_LetIn":
		return "no proxy stands before the test server yet"
	case "Law10_Quiet":
		return "the test server does not count yet"
	case "Law14_LostNotice", "Also_Loss", "Law16_RenewBounded":
		return "nobody can end, deafen or stop a client of the test server yet"
	}
	return ""
}

// In a driver's own package this is the body of TestConformance.
func ExampleRun() {
	var t *testing.T // the test's own
	drivertest.Run(t, newTiny)
}
