package drivertest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/memlock"
)

// memory is the harness of memlock: every driver is a share of one store.
type memory struct {
	store *memlock.Driver
	slack time.Duration
}

func (m *memory) Driver(drivertest.T) driver.Driver { return m.store.Share() }
func (m *memory) Prefix() string                    { return "suite/" }
func (m *memory) TTL() time.Duration                { return time.Second }
func (m *memory) Slack() time.Duration              { return m.slack }

func (m *memory) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) func() {
	if way == drivertest.Replies {
		return d.(*memlock.Driver).StallReplies()
	}
	return d.(*memlock.Driver).Stall()
}

func (m *memory) End(_ drivertest.T, d driver.Driver, _ driver.Spec) {
	d.(*memlock.Driver).EndSessions()
}

func (m *memory) Calls(d driver.Driver) int { return d.(*memlock.Driver).Calls() }

func (m *memory) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

func (m *memory) Cannot(law string) string {
	switch law {
	case "Law13_NothingStays", "Also_Outcomes":
		return "a request that memlock's wire holds is not sent any more when its context has ended"
	case "Law14_LostNotice":
		return "memlock loses notices by personality, for the whole store: TestMemlockThatLosesNotices"
	case "Law16_RenewBounded":
		return "all drivers are in this process, which cannot stop a part of itself between two instructions"
	}
	return ""
}

func TestMemlock(t *testing.T) {
	drivertest.Run(t, func(*testing.T) drivertest.Harness {
		return &memory{store: memlock.New(), slack: 2 * time.Second}
	})
}

func TestMemlockInABubble(t *testing.T) {
	drivertest.RunBubble(t, func(*testing.T) drivertest.Harness { return &memory{store: memlock.New()} })
}

// The example's harness passes, with what it cannot do said.
func TestTheTinyHarness(t *testing.T) { drivertest.RunBubble(t, newTiny) }

// Each personality keeps the contract: it is worse only in what its traits leave out.
func TestMemlockPersonalities(t *testing.T) {
	for name, p := range map[string]memlock.Personality{
		"Clamped":        {Clamp: 300 * time.Millisecond},
		"Rounded":        {Round: 700 * time.Millisecond},
		"NoExpiry":       {NoExpiry: true},
		"NoOrder":        {NoOrder: true},
		"NoFence":        {NoFence: true},
		"MutexOnly":      {NoShared: true, NoCount: true},
		"DoubledNotices": {Notices: memlock.Doubled},
		"EarlyNotices":   {Notices: memlock.Early},
		"AllAtOnce":      {NoExpiry: true, NoOrder: true, NoFence: true, NoShared: true, NoCount: true, Notices: memlock.Early},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.RunBubble(t, func(*testing.T) drivertest.Harness { return &memory{store: memlock.NewPersonality(p)} })
		})
	}
}

// A store that never tells keeps the laws that speak of what Renew finds. It cannot keep those that
// speak of being told without one.
func TestMemlockThatLosesNotices(t *testing.T) {
	kept := 0
	for _, law := range drivertest.Laws() {
		if !strings.HasPrefix(law.Name, "Law14") && !strings.HasPrefix(law.Name, "Law13") && !strings.HasPrefix(law.Name, "Law09") {
			continue
		}
		kept++
		t.Run(law.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				law.Try(t, &memory{store: memlock.NewPersonality(memlock.Personality{Notices: memlock.Lost})})
			})
		})
	}
	if kept != 3 {
		t.Fatalf("%d laws were tried, want 3", kept)
	}
}
