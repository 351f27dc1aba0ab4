package drivertest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/memlock"
)

// bare is a harness without any means.
type bare struct{ h *memory }

func (b bare) Driver(t drivertest.T) driver.Driver { return b.h.Driver(t) }
func (b bare) Prefix() string                      { return b.h.Prefix() }
func (b bare) TTL() time.Duration                  { return b.h.TTL() }

// modest is one that says so.
type modest struct{ bare }

func (modest) Cannot(string) string { return "there is only a Driver here" }

// What a harness lacks is a fault, unless it says why; then it is in the log.
func TestMissingMeansAreFaults(t *testing.T) {
	needs := map[string]string{
		"Law02_Idempotence": "Staller", "Law10_Quiet": "Counter", "Law13_NothingStays": "Staller",
		"Law14_LostNotice": "Deafener", "Law16_RenewBounded": "Freezer", "Also_Loss": "Ender", "Also_Contexts": "Staller",
		"Also_LetIn": "Staller", "Also_Outcomes": "Staller",
	}
	for _, law := range drivertest.Laws() {
		t.Run(law.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				harness := bare{&memory{store: memlock.New()}}
				v := drivertest.Judge(law, func(drivertest.T) drivertest.Harness { return harness })
				means, need := needs[law.Name]
				if v.Convicted() != need {
					t.Fatalf("convicted is %v, want %v: %s", v.Convicted(), need, v)
				}
				if need && !strings.Contains(v.Faults[0], "is no drivertest."+means) {
					t.Fatalf("the fault does not name %s: %s", means, v)
				}
				v = drivertest.Judge(law, func(drivertest.T) drivertest.Harness { return modest{harness} })
				if v.Convicted() {
					t.Fatalf("a harness that says what it lacks is convicted: %s", v)
				}
				if need && !strings.Contains(strings.Join(v.Log, "\n"), "excused: "+law.Name+": nobody has tried ") {
					t.Fatalf("the reason is not in the log: %q", v.Log)
				}
			})
		})
	}
}

// blind is a harness whose driver has nothing that is optional.
type blind struct{ numb }

var lacks = map[string]string{
	"Law15_Break": "no driver.Inspector", "Also_Inspector": "no driver.Inspector", "Also_Shown": "no driver.Inspector",
	"Also_Told": "no driver.Inspector", "Also_Watch": "no driver.Watcher", "Also_Requeue": "no driver.Requeuer", "Also_Inherit": "no driver.Inheritor",
}

func (blind) Cannot(law string) string {
	if lacks[law] != "" {
		return ""
	}
	return "there is only a Driver here"
}

// What a driver lacks is no fault, and in the list all the same.
func TestWhatADriverLacksIsSaid(t *testing.T) {
	for _, law := range drivertest.Laws() {
		synctest.Test(t, func(t *testing.T) {
			v := drivertest.Judge(law, func(drivertest.T) drivertest.Harness { return blind{numb{bare{&memory{store: memlock.New()}}}} })
			said := strings.Contains(strings.Join(v.Log, "\n"), "the driver may lack it: it is "+lacks[law.Name])
			if want := lacks[law.Name] != ""; v.Convicted() || want && !said {
				t.Errorf("%s: want what is lacking said: %v, said: %v: %s\n%q", law.Name, want, said, v, v.Log)
			}
		})
	}
}

// numb is bare over sessions that are no LossNotifiers.
type numb struct{ bare }

func (n numb) Driver(t drivertest.T) driver.Driver { return numbDriver{n.bare.Driver(t)} }

type numbDriver struct{ driver.Driver }

func (d numbDriver) Open(ctx context.Context, s driver.Spec) (driver.Session, error) {
	inner, err := d.Driver.Open(ctx, s)
	return struct{ driver.Session }{inner}, err
}

// Where no session notifies of losses nobody has to end one, and that none was ended is said.
func TestNoEnderIsAskedWhereNobodyNotifies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, law := range drivertest.Laws() {
			if law.Name != "Also_Loss" {
				continue
			}
			v := drivertest.Judge(law, func(drivertest.T) drivertest.Harness { return numb{bare{&memory{store: memlock.New()}}} })
			if want := "excused: Also_Loss: nobody has tried "; len(v.Faults) > 0 || !strings.Contains(strings.Join(v.Log, "\n"), want) {
				t.Errorf("want no fault and %q: %s\n%q", want, v, v.Log)
			}
		}
	})
}

// forgetful is memlock with a driver whose Release does nothing.
type forgetful struct{ *memory }

func (f forgetful) Driver(t drivertest.T) driver.Driver { return forgetfulDriver{f.memory.Driver(t)} }

type forgetfulDriver struct{ driver.Driver }

func (d forgetfulDriver) Open(ctx context.Context, s driver.Spec) (driver.Session, error) {
	inner, err := d.Driver.Open(ctx, s)
	return forgetfulSession{inner}, err
}

type forgetfulSession struct{ driver.Session }

func (forgetfulSession) Release(context.Context, driver.Claim) (bool, error) { return true, nil }

// A fault tells what the law says, what was done by whom in which order, and what came back.
func TestAFaultPrintsItsTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := drivertest.Laws()[2]
		v := drivertest.Judge(law, func(drivertest.T) drivertest.Harness {
			return forgetful{&memory{store: memlock.New()}}
		})
		if !v.Convicted() {
			t.Fatal("a driver that releases nothing is acquitted")
		}
		rest := v.Faults[0]
		for _, part := range []string{
			law.Name + " is broken: ", "\n\nThe law says: " + law.Says, "Traits: Ordered", "seed ",
			"A      Open(TTL 1s) → valid 1s", `A      Acquire(c1: mutex, try on "one-session-mutex-1") → held, token `,
			"A      Acquire(c2: mutex, try", "not held, mutex ", "A      Release(c",
		} {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Fatalf("the trace does not go on with %q:\n%s", part, v.Faults[0])
			}
			rest = after
		}
	})
}
