package drivertest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

type plain struct{ store *memlock.Driver }

func (p plain) Driver(T) driver.Driver { return p.store.Share() }
func (p plain) Prefix() string         { return "attempt/" }
func (p plain) TTL() time.Duration     { return time.Second }

// A fault counts at once, unless the machine stood still; then the trial is repeated, and the third counts.
func TestATrialOnASlowMachineIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name      string
		faults    int // trials that find a fault
		late      time.Duration
		slow      bool
		trials    int
		convicted bool
	}{
		{"Fault", 1, 0, false, 1, true},
		{"FaultAndALittleLate", 1, 100 * time.Millisecond, false, 1, true},
		{"StoodStillOnce", 1, 300 * time.Millisecond, false, 2, false},
		{"StoodStillTwice", 2, 300 * time.Millisecond, false, 3, false},
		{"StoodStillAlways", 9, 300 * time.Millisecond, false, 3, true},
		{"TooSlowOnce", 1, 0, true, 2, false},
		{"TooSlowAlways", 9, 0, true, 3, true},
		{"StoodStillWithoutAFault", 0, time.Minute, false, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trials := 0
				names := map[string]bool{}
				law := Law{Name: "Law99_Attempts", try: func(w *world) {
					trials++
					names[w.name("n")] = true
					w.mu.Lock()
					w.late = c.late
					w.mu.Unlock()
					switch {
					case trials > c.faults:
					case c.slow:
						w.tooSlow("a step")
					default:
						w.fail("a fault")
					}
				}}
				v := Judge(law, func(T) Harness { return plain{memlock.New()} })
				if trials != c.trials || v.Convicted() != c.convicted {
					t.Fatalf("%d trials, convicted %v; want %d, %v: %s", trials, v.Convicted(), c.trials, c.convicted, v)
				}
				if len(names) != trials {
					t.Errorf("%d trials used %d names: what one left behind is in the next one's way", trials, len(names))
				}
				if again := strings.Count(strings.Join(v.Log, "\n"), "tried again"); again != trials-1 {
					t.Errorf("the log speaks of %d repetitions, want %d", again, trials-1)
				}
			})
		})
	}
}
