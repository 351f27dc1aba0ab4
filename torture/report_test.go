package torture

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/internal/history"
)

// good is a report of a scenario that held and a twin that failed.
func good() *Report {
	return &Report{
		Store: "file:/tmp/locks", Traits: "Ordered", Seed: 7, Took: Duration(1500 * time.Millisecond),
		Trials: []Trial{
			{
				Scenario: Storm, Setup: "2 processes", Took: Duration(time.Second),
				Checks:  []Check{{ID: "V3", Title: history.TitleOverlap, Cases: 9}, {ID: "V4", Title: history.TitleNotice, Cases: 3, Note: "close"}},
				Figures: []Figure{{Name: "leases", Value: 9}, {Name: "longest wait", Value: 1.25, Unit: "ms"}},
			},
			{
				Scenario: Storm, Twin: "without the lock", MustFail: "V3", Setup: "2 processes",
				Checks: []Check{{ID: "V3", Title: history.TitleOverlap, Cases: 9, Violations: 4, Stories: []string{"a story"}}},
			},
		},
	}
}

func TestReportErr(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Report)
		want  []error
	}{
		"as it must be":       {func(*Report) {}, nil},
		"a check failed":      {func(r *Report) { r.Trials[0].Checks[0].Violations = 1 }, []error{ErrConvicted}},
		"all cases were void": {func(r *Report) { r.Trials[0].Checks[1].Cases, r.Trials[0].Checks[1].Void = 0, 3 }, []error{ErrToothless}},
		"nobody held a flawless lock": {func(r *Report) {
			r.Trials[0].Scenario, r.Trials[0].Figures = Flawed, nil
		}, []error{ErrToothless}},
		"a check had no cases":  {func(r *Report) { r.Trials[0].Checks[1].Cases = 0 }, []error{ErrToothless}},
		"a twin did not fail":   {func(r *Report) { r.Trials[1].Checks[0].Violations = 0 }, []error{ErrToothless}},
		"a twin was not judged": {func(r *Report) { r.Trials[1].Checks = nil }, []error{ErrToothless}},
		"a twin failed elsewhere": {func(r *Report) {
			r.Trials[1].Checks = append(r.Trials[1].Checks, Check{ID: "V1", Cases: 9, Violations: 1})
		}, []error{ErrConvicted}},
		"a twin failed where it may": {func(r *Report) {
			r.Trials[1].Checks = append(r.Trials[1].Checks, Check{ID: "V2", Cases: 9, Violations: 1})
			r.Trials[1].MayFail = []string{"V2"}
		}, nil},
		"a worker failed": {func(r *Report) { r.Trials[0].Errors = []string{"exit status 2"} }, []error{ErrBroken}},
		"both": {func(r *Report) {
			r.Trials[0].Checks[0].Violations = 1
			r.Trials[1].Checks[0].Violations = 0
		}, []error{ErrConvicted, ErrToothless}},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.spoil(r)
			err := r.Err()
			for _, e := range []error{ErrConvicted, ErrToothless, ErrBroken} {
				wanted := false
				for _, w := range c.want {
					wanted = wanted || errors.Is(w, e)
				}
				if errors.Is(err, e) != wanted {
					t.Errorf("Err() = %v, want %v in it: %v", err, e, wanted)
				}
			}
			passed := true
			for _, trial := range r.Trials {
				passed = passed && trial.Passed()
			}
			if passed != (len(c.want) == 0) {
				t.Errorf("all trials passed: %v, and Err() = %v", passed, err)
			}
		})
	}
}

func TestReportPrint(t *testing.T) {
	var b strings.Builder
	if err := good().Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seed 7", "storm, twin without the lock: 2 processes", "ok  V3", "3 failed; close", "fails, as it must",
		"leases 9, longest wait 1.250 ms", "everything held, and every twin failed as it must",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "a story") {
		t.Errorf("the report tells the stories of a twin, whose failures are wanted:\n%s", b.String())
	}
	r := good()
	r.Trials[0].Checks[0].Violations, r.Trials[0].Checks[0].Stories = 1, []string{"the worse\nstory\n"}
	b.Reset()
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "V3, the worse\n  story") || !strings.Contains(b.String(), ErrConvicted.Error()) {
		t.Errorf("the report does not tell what failed:\n%s", b.String())
	}
}

func TestReportJSON(t *testing.T) {
	r := good()
	r.Seed = 1<<63 + 1
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"seed":"9223372036854775809"`) || !strings.Contains(string(text), `"took":"1.5s"`) {
		t.Errorf("the seed must be a string, because it may not fit a number of JSON, and times readable: %s", text)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Seed != r.Seed || back.Took != r.Took || len(back.Trials) != 2 || back.Trials[0].Figure("leases") != 9 {
		t.Errorf("read back as %+v", back)
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"negative time":    {Config{For: -time.Second}, "want a positive duration"},
		"one process":      {Config{Processes: 1}, "want 2 processes or more"},
		"too many":         {Config{Processes: 100, Goroutines: 100}, "1,000 goroutines at most"},
		"unknown scenario": {Config{Scenarios: []string{"rain"}}, `unknown scenario "rain": want one of storm, handoffs`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.cfg.withDefaults(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	cfg, err := Config{}.withDefaults()
	if err != nil || cfg.For != 20*time.Second || cfg.Processes != 8 || cfg.Goroutines != 8 || cfg.Seed == 0 || cfg.Scenarios[0] != Storm {
		t.Errorf("the defaults are %+v, %v", cfg, err)
	}
}
