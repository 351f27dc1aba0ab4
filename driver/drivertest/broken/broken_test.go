package broken

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
)

func lawNamed(t *testing.T, name string) drivertest.Law {
	t.Helper()
	for _, law := range drivertest.Laws() {
		if law.Name == name {
			return law
		}
	}
	t.Fatalf("no law is called %s", name)
	return drivertest.Law{}
}

// judge returns the verdict of d's law on a harness, in a bubble unless d is Real.
func (d Driver) judge(t *testing.T, newHarness func(drivertest.T) drivertest.Harness) (v drivertest.Verdict) {
	t.Helper()
	law := lawNamed(t, d.Law)
	if d.Real {
		return drivertest.Judge(law, newHarness)
	}
	synctest.Test(t, func(*testing.T) { v = drivertest.Judge(law, newHarness) })
	return v
}

// drivers are those to try: in a short run without the hundred that only show how far the laws
// reach.
func drivers() []Driver {
	if testing.Short() {
		return Drivers()
	}
	return slices.Concat(Drivers(), noticed())
}

// Each broken driver is convicted under the law that it breaks, and says the reason meant.
func TestTheSuiteConvicts(t *testing.T) {
	for _, d := range drivers() {
		t.Run(d.Law+"/"+d.Name, func(t *testing.T) {
			v := d.judge(t, d.Harness)
			if !v.Convicted() {
				t.Fatalf("the suite does not convict a driver that is broken: %s\n%s", d.Fault, v)
			}
			verdict, _, _ := strings.Cut(v.Faults[0], "\n\nThe law says: ") // without the trace
			if len(v.Faults) != 1 || !strings.HasPrefix(verdict, d.Law+" is broken: ") || !says(verdict, d.Says) {
				t.Fatalf("broken is: %s\nand the report should say %q, but it says:\n%s", d.Fault, d.Says, v)
			}
		})
	}
}

// says reports whether a report has one of the parts.
func says(report, parts string) bool {
	return slices.ContainsFunc(strings.Split(parts, " | "), func(part string) bool {
		rest := report
		for words := range strings.SplitSeq(part, "…") {
			_, after, found := strings.Cut(rest, words)
			if !found {
				return false
			}
			rest = after
		}
		return true
	})
}

// A report ends where the law was broken, with the lines that it names as the driver shows them.
func TestAReportShowsTheLine(t *testing.T) {
	d := kinds[slices.IndexFunc(kinds, func(d Driver) bool { return d.Name == "ReadsNeverExpire" })]
	report := strings.TrimSpace(d.judge(t, d.Harness).String())
	if last := report[strings.LastIndex(report, "\n")+1:]; !says(last, `Line("expiry-read-…Kind:read…Held:true`) {
		t.Fatalf("the last line of the report is %q", last)
	}
}

// Each twin, which has all but the fault, is acquitted.
func TestTheSuiteAcquitsTheTwins(t *testing.T) {
	for _, d := range drivers() {
		t.Run(d.Law+"/"+d.Name, func(t *testing.T) {
			if v := d.judge(t, d.Twin); len(v.Faults) > 0 {
				t.Fatalf("the suite does not acquit a driver without the fault:\n%s", v)
			}
		})
	}
}

// A store with one liveness for all claims of a session may renew it along with any call for one of
// them.
func TestTheSuiteAcquitsWhoRenewsMore(t *testing.T) {
	d := Driver{Law: "Law08_Expiry", new: func() *fault {
		return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			_, _ = s.Session.Renew(ctx)
			return s.Session.Wait(ctx, c)
		}}
	}}
	if v := d.judge(t, d.Harness); len(v.Faults) > 0 {
		t.Fatalf("the suite does not acquit a driver whose Wait renews the session:\n%s", v)
	}
}

// The layer alone breaks no law.
func TestTheLayerIsInnocent(t *testing.T) {
	drivertest.RunBubble(t, func(*testing.T) drivertest.Harness { return Driver{}.Twin(t) })
}

func TestEveryLawHasABrokenDriver(t *testing.T) {
	broken := map[string]bool{}
	names := map[string]bool{}
	for _, d := range slices.Concat(Drivers(), noticed()) {
		if names[d.Name] || d.Fault == "" || d.Says == "" {
			t.Errorf("%s: want a name of its own, what the fault is and what the report says", d.Name)
		}
		broken[d.Law], names[d.Name] = true, true
	}
	laws := 0
	for _, law := range drivertest.Laws() {
		if strings.HasPrefix(law.Name, "Law") {
			laws++
		}
		if !broken[law.Name] {
			t.Errorf("no broken driver shows that %s can convict", law.Name)
		}
	}
	if laws != 16 {
		t.Errorf("there are %d laws, want the sixteen", laws)
	}
}
