package mysqllock_test

import (
	"testing"

	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// Who is not in line yet looks.
func TestConformanceOfSession(t *testing.T) {
	t.Parallel()
	conforms(t, migrated(t), "session", drivertest.Budget{Acquire: 1, Release: 1, Handoff: 2},
		storetest.InShort("Law03_OneSession", "Law05_Tokens", "Law08_Expiry", "Law11_NoOvertaking", "Also_Parallel"))
}

func conforms(t *testing.T, s *servertest.Server, technique string, budget drivertest.Budget, laws []drivertest.Law) {
	t.Helper()
	drivertest.Run(t, func(*testing.T) drivertest.Harness {
		return storetest.NewHarness(storetest.Store{
			Server: s, URL: s.URL() + "?max_waiting=200&technique=" + technique, Request: asked, Budget: budget, Cannot: storetest.OfConnections, Unseen: true,
		})
	}, laws...)
}
