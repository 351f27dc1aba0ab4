package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
)

type doctorCommand struct {
	Strict bool `help:"End with status 1 for a warning, too."`
	Write  bool `help:"Take a lock, interlock-doctor-N, break it and take it again, and measure what only writing shows."`
}

// Help implements kong.HelpProvider.
func (*doctorCommand) Help() string {
	return "Looks at the store with the rights that --store gives, and says of each check what was seen, why it matters for locks, and how to mend it. " +
		"Without --write it writes nothing, beside the folder that opening an embedded store makes.\n\n" +
		"A line is ok; a warning, where one thing more, such as a restart, a failover or more load, costs a lock; bad, where a promise of the store is broken; " +
		"or skipped, where the check could not be made. A code as R3 is a row of " + catalogue + ". What the store guarantees as it stands is said at the end.\n\n" +
		"The status is 0, 1 where anything is bad, and 69 where no server of the store answers."
}

// catalogue is where the codes of findings are explained.
const catalogue = "https://github.com/interlock-go/interlock/blob/main/docs/failures.md"

// Run examines the store and prints what it found.
func (c *doctorCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	report, name, err := c.examine(ctx, t, common)
	if err != nil && report == nil {
		return err
	}
	if common.JSON {
		err = errors.Join(printJSON(t.out, asJSON(name, report)), err)
	} else {
		printReport(t, name, report, err == nil)
	}
	switch {
	case err != nil:
		return storeError(err)
	case report.Worst() == driver.LevelBad, c.Strict && report.Worst() == driver.LevelWarn:
		return &exitError{status: exitFindings}
	}
	return nil
}

// examine asks the store what its checks find. A store that answers and cannot be opened as it is gets one finding: the
// driver's own, or else the error.
func (c *doctorCommand) examine(ctx context.Context, t terminal, common *commonFlags) (r *interlock.Report, name string, err error) {
	open := driver.LookURL
	if c.Write {
		open = driver.OpenURL
	}
	d, name, err := common.openBy(ctx, t, open)
	if err != nil {
		var known *exitError
		var answered *driver.FindingError
		found := interlock.Finding{Title: "opening", Level: driver.LevelBad, Seen: oneLine(err), Why: "the store cannot be used as it is: no lock can be had", Mend: "as the message says"}
		switch {
		case errors.As(err, &known) && known.status == exitUsage, ctx.Err() != nil:
			return nil, "", err
		case errors.As(err, &answered):
			found = answered.Finding
		case errors.Is(err, driver.ErrNotSent):
			return nil, "", err
		}
		storeURL, _, _ := common.url()
		return &interlock.Report{Findings: []interlock.Finding{found}, Guarantee: "It cannot be used."}, driver.Redact(storeURL), nil
	}
	defer func() { _ = d.Close(context.WithoutCancel(ctx)) }()
	client, err := interlock.New(d, nil)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = client.Close() }() // nothing of ours stays in the store
	var o []interlock.DoctorOption
	if c.Write {
		o = append(o, interlock.Writing())
	}
	r, err = client.Doctor(ctx, o...)
	return r, name, err
}

// reportJSON is a report as programs read it.
type reportJSON struct {
	Store string `json:"store"`
	*interlock.Report
	Worst driver.Level `json:"worst"`
}

func asJSON(name string, r *interlock.Report) reportJSON { return reportJSON{name, r, r.Worst()} }

// printReport prints a report: a line for each check, and below it what is to be done where
// something is wrong. whole is false where the store has not answered to the end.
func printReport(t terminal, name string, r *interlock.Report, whole bool) {
	t.print("%s", name)
	column := 0
	for _, f := range r.Findings {
		column = max(column, width(f.Title))
	}
	for _, f := range r.Findings {
		seen := f.Seen
		if f.Code != "" && f.Level > driver.LevelSkip {
			seen = f.Code + ": " + seen
		}
		if f.Server != "" {
			seen = f.Server + ": " + seen
		}
		mark := mark(t, f.Level)
		t.part(" "+mark+" "+text.Pad(printable.Text(f.Title), column, ' ')+"  ", seen)
		if f.Level > driver.LevelSkip {
			indent := strings.Repeat(" ", width(mark)+column+4)
			t.part(indent+"why   ", f.Why)
			t.part(indent+"mend  ", f.Mend)
		}
	}
	t.part("As it stands: ", r.Guarantee)
	if sum := counted(r); sum != "" {
		t.print("%s", sum)
	} else if whole {
		t.print("All is well.")
	}
}

// mark returns a level for people: a sign on a terminal, elsewhere a word. All are equally wide.
func mark(t terminal, l driver.Level) string {
	if t.columns == 0 {
		return text.Pad(l.String(), len("skip"), ' ')
	}
	sign, colour := "✓", text.FgGreen
	switch l {
	case driver.LevelSkip:
		sign, colour = "-", text.Faint
	case driver.LevelWarn:
		sign, colour = "!", text.FgYellow
	case driver.LevelBad:
		sign, colour = "✗", text.FgRed
	case driver.LevelOK:
	}
	if t.colours {
		return colour.Sprint(sign)
	}
	return sign
}

// counted says how many findings there are, and nothing where there are none.
func counted(r *interlock.Report) string {
	var parts []string
	for _, k := range []struct {
		level     driver.Level
		one, more string
	}{{driver.LevelBad, "1 bad", "%d bad"}, {driver.LevelWarn, "1 warning", "%d warnings"}, {driver.LevelSkip, "1 check was skipped", "%d checks were skipped"}} {
		switch n := len(r.Of(k.level)); n {
		case 0:
		case 1:
			parts = append(parts, k.one)
		default:
			parts = append(parts, fmt.Sprintf(k.more, n))
		}
	}
	if parts == nil {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}
