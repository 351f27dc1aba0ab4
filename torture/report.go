package torture

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run has shown.
type Report struct {
	Store   string    `json:"store"` // without secrets
	Traits  string    `json:"traits"`
	Seed    uint64    `json:"seed,string"`
	Started time.Time `json:"started"`
	Took    Duration  `json:"took"`
	Trials  []Trial   `json:"trials"`
}

// Trial is one scenario, or one of its twins.
type Trial struct {
	Scenario string   `json:"scenario"`
	Twin     string   `json:"twin,omitempty"`      // what it lacks; empty for the scenario itself
	MustFail string   `json:"must_fail,omitempty"` // the check that a twin must fail
	MayFail  []string `json:"may_fail,omitempty"`  // others that it may fail; all the rest it must pass
	Why      string   `json:"why,omitempty"`       // they may
	Setup    string   `json:"setup"`
	Took     Duration `json:"took"`
	Figures  []Figure `json:"figures"`
	Checks   []Check  `json:"checks"`
	Errors   []string `json:"errors,omitempty"` // that no fault explains
}

// Figure is something that was counted or measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// Check is one rule and what became of it.
type Check struct {
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Cases      int      `json:"cases"`          // that could have failed
	Violations int      `json:"violations"`     // that did
	Void       int      `json:"void,omitempty"` // cases that say nothing: a process did not run
	Note       string   `json:"note,omitempty"`
	Stories    []string `json:"stories,omitempty"` // of the first few violations
}

// Duration is a time.Duration that JSON shows as people write it.
type Duration time.Duration

// String is as of time.Duration, to the millisecond.
func (d Duration) String() string { return time.Duration(d).Round(time.Millisecond).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Passed reports whether a scenario kept all rules, or a twin failed where it must and only where
// it may.
func (t Trial) Passed() bool { return !t.convicted() && !t.toothless() && len(t.Errors) == 0 }

// convicted reports whether a check failed that must not.
func (t Trial) convicted() bool {
	return slices.ContainsFunc(t.Checks, func(c Check) bool { return c.Violations > 0 && !t.excused(c) })
}

// excused reports whether a check may fail.
func (t Trial) excused(c Check) bool { return c.ID == t.MustFail || slices.Contains(t.MayFail, c.ID) }

// toothless reports whether what passed shows nothing: a scenario without cases of some kind, a
// twin that did not fail, a correct lock that nobody held.
func (t Trial) toothless() bool {
	if t.MustFail != "" {
		return t.check(t.MustFail).Violations == 0
	}
	if t.Scenario == Flawed && t.Figure("leases") == 0 {
		return true
	}
	return len(t.Checks) == 0 || t.Twin == "" && slices.ContainsFunc(t.Checks, func(c Check) bool { return c.Cases == 0 && !t.excused(c) })
}

func (t Trial) check(id string) Check {
	for _, c := range t.Checks {
		if c.ID == id {
			return c
		}
	}
	return Check{}
}

// Figure returns the value of a figure, 0 if there is none of that name.
func (t Trial) Figure(name string) float64 {
	for _, f := range t.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	return 0
}

// The reasons for which a run fails.
var (
	// ErrConvicted: a check failed.
	ErrConvicted = errors.New("torture: the locks of this store did not hold")

	// ErrToothless: a twin that must fail did not, or a check found no cases, so what passed shows
	// nothing.
	ErrToothless = errors.New("torture: not enough cases: the faults did not bite, so the run does not count: run it for longer, or on a machine with less to do")

	// ErrBroken: a worker failed in a way that no fault explains.
	ErrBroken = errors.New("torture: a worker failed")
)

// Err returns nil if every trial passed, and otherwise ErrConvicted, ErrToothless, ErrBroken, or
// several of them.
func (r *Report) Err() error {
	var convicted, toothless, broken bool
	for _, t := range r.Trials {
		convicted = convicted || t.convicted()
		toothless = toothless || t.toothless()
		broken = broken || len(t.Errors) > 0
	}
	var errs []error
	for _, e := range []struct {
		is  bool
		err error
	}{{convicted, ErrConvicted}, {broken, ErrBroken}, {toothless, ErrToothless}} {
		if e.is {
			errs = append(errs, e.err)
		}
	}
	return errors.Join(errs...)
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	store := r.Store
	if r.Traits != "" {
		store += " (" + r.Traits + ")"
	}
	fmt.Fprintf(&b, "%s, seed %d, %v\n", store, r.Seed, r.Took)
	for _, t := range r.Trials {
		t.print(&b)
	}
	verdict := "everything held, and every twin failed as it must"
	if len(r.Trials) > 0 && r.Trials[0].Scenario == Flawed {
		verdict = "every lock with a flaw was convicted, and the correct one held"
	}
	if err := r.Err(); err != nil {
		verdict = err.Error()
	}
	fmt.Fprintf(&b, "\n%s\n", verdict)
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Trial) print(b *strings.Builder) {
	title := t.Scenario
	switch {
	case t.Scenario == Flawed:
		title += ", " + t.Twin
	case t.Twin != "":
		title += ", twin " + t.Twin
	}
	fmt.Fprintf(b, "\n%s: %s (%v)\n", title, t.Setup, t.Took)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, c := range t.Checks {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", t.mark(c), c.ID, c.Title, c.count())
	}
	table.Flush()
	if t.Why != "" && t.MustFail == "" {
		fmt.Fprintf(b, "  not promised: %s, because %s\n", strings.Join(t.MayFail, ", "), t.Why)
	}
	for _, line := range wrap(t.Figures) {
		fmt.Fprintf(b, "  %s\n", line)
	}
	for _, e := range t.Errors {
		fmt.Fprintf(b, "  error: %s\n", strings.ReplaceAll(e, "\n", "\n    "))
	}
	for _, c := range t.Checks {
		if t.excused(c) && t.Twin != "" && t.Scenario != Flawed {
			continue
		}
		for _, s := range c.Stories {
			fmt.Fprintf(b, "  %s, %s", c.ID, strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  "))
			b.WriteString("\n")
		}
	}
}

// mark says in a few words how a check went.
func (t Trial) mark(c Check) string {
	switch {
	case t.MustFail == c.ID && c.Violations > 0:
		return "fails, as it must"
	case t.MustFail == c.ID:
		return "DOES NOT FAIL"
	case c.Violations > 0 && t.excused(c) && t.Twin == "":
		return "fails, as it may"
	case c.Violations > 0 && t.excused(c):
		return "fails, too"
	case c.Violations > 0:
		return "FAILED"
	case c.Cases == 0 && !t.excused(c) && t.Twin == "":
		return "NO CASES"
	case t.excused(c) && t.Twin != "" || c.Cases == 0:
		return "-"
	}
	return "ok"
}

func (c Check) count() string {
	s := fmt.Sprintf("%d of %d failed", c.Violations, c.Cases)
	if c.Void > 0 {
		s += fmt.Sprintf("; %d void, because a process did not run", c.Void)
	}
	if c.Note != "" {
		s += "; " + c.Note
	}
	return s
}

// wrap lays figures out in lines.
func wrap(figures []Figure) []string {
	var lines []string
	line := ""
	for i, f := range figures {
		unit := f.Unit
		if unit != "" {
			unit = " " + unit
		}
		word := fmt.Sprintf("%s %s%s", f.Name, number(f.Value), unit)
		if i < len(figures)-1 {
			word += ", "
		}
		if len(line)+len(word) > 110 {
			lines = append(lines, strings.TrimSpace(line))
			line = ""
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// number shows counts whole and small values with three digits behind the point.
func number(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d", int64(v))
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
