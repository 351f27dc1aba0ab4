package pglock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

func TestConformanceOfSession(t *testing.T) {
	t.Parallel()
	conforms(t, migrated(t, "-c", "fsync=on"), "session", drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1},
		"Law03_OneSession", "Law05_Tokens", "Law08_Expiry", "Law11_NoOvertaking", "Also_Parallel")
}

// With a row lock there is a statement more that makes the row, and one that draws the token. Its
// time is that of session, by the same code: in short TestS04_ASessionIsNotRenewed sees it of both.
func TestConformanceOfRowlock(t *testing.T) {
	t.Parallel()
	conforms(t, migrated(t, "-c", "fsync=on", "-c", "max_connections=700"), "rowlock", drivertest.Budget{Acquire: 3, Release: 1, Handoff: 2},
		"Law03_OneSession", "Law05_Tokens", "Law11_NoOvertaking", "Also_Parallel")
}

func conforms(t *testing.T, s *servertest.Server, technique string, budget drivertest.Budget, inShort ...string) {
	t.Helper()
	drivertest.Run(t, func(*testing.T) drivertest.Harness {
		return storetest.NewHarness(storetest.Store{
			Server: s, URL: by(s.URL(), technique) + "&max_waiting=200", TTL: usual(), Request: asked, Budget: budget, Cannot: storetest.OfConnections, Unseen: true,
		})
	}, storetest.InShort(inShort...)...)
}

// A reader by a row lock passes a writer that waits, so the technique promises no order.
func TestRowlocksAreUnordered(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d, err := driver.OpenURL(t.Context(), s.URL()+"&technique=rowlock")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if d.Traits().Ordered {
		t.Error("row locks promise order")
	}
	var all [3]driver.Session
	for i := range all {
		if all[i], err = d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	one, writes, two := mutex("passed"), mutex("passed"), tries("passed")
	for _, c := range []*driver.Claim{&one, &two} {
		c.Kind, c.Weight = driver.Read, 1
	}
	asks(t, all[0], one, true)
	asks(t, all[1], writes, false)
	asks(t, all[2], two, true)
	leaves(t, all[0], one, true)
	leaves(t, all[2], two, true)
	awaits(t, all[1], writes)
	leaves(t, all[1], writes, true)
	if _, err := d.(driver.Inspector).Line(t.Context(), "passed"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Line: %v", err)
	}
	bare := servertest.Postgres(t)
	if _, err := driver.OpenURL(t.Context(), bare.URL()+"&technique=rowlock"); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "interlock migrate") {
		t.Errorf("without tables: %v", err)
	}
}
