package cli

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

type watchCommand struct {
	Name string `arg:"" help:"The lock's name."`
	outputFlag
}

// Help implements kong.HelpProvider.
func (*watchCommand) Help() string {
	return "Prints who holds and who waits, one row each, and from then on a row for whoever comes, gets the lock, is broken, or is gone, with the time; free where nobody is left. " +
		"Where the store cannot be reached meanwhile, as while it restarts, watching goes on when it is there again; stderr says both, but for etcd, whose client waits by itself. " +
		"With --json the whole line is printed, now, after every change, and when the store is there again, with the time at which it was seen.\n\n" + columnsHelp(", from ID on with -o wide")
}

// Run prints the line now and every change of it, until it is interrupted.
func (c *watchCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	if err := named(c.Name); err != nil {
		return err
	}
	v, err := common.view(ctx, t)
	if err != nil {
		return err
	}
	defer v.close()
	changes := changes{t: t, output: c.Output}
	tell := func(text string) { t.say("%s", text) }
	for l, err := range followOn(ctx, v, c.Name, tell) {
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // Ctrl-C is how one ends it
		case err != nil:
			return storeError(err)
		case common.JSON:
			err = printJSON(t.out, seenJSON{time.Now(), asLineJSON(v, l)})
		default:
			err = changes.print(l, time.Now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changes prints the states of a line as a log: the header once, the claims, and then those that
// are gone, have come, or are shown otherwise than before. A claim of which only the age and the
// trust differ makes no row.
type changes struct {
	t      terminal
	output string
	widths []int
	before []driver.Holder // who stood there; nil before the first state
}

// logWidths are the least widths of the columns of a log, whose later rows are not known when the
// first is printed: the time, and those of a claim without its name.
var logWidths = []int{12, 6, 24, 6, 6, 16, 12, 6, 6, 0}

func (c *changes) print(l driver.Line, now time.Time) error {
	var rows [][]string
	add := func(row []string) {
		rows = append(rows, slices.Concat([]string{now.Format("15:04:05.000")}, row[nameColumn+1:]))
	}
	stands := map[string]driver.Holder{}
	for _, h := range l.Claims {
		stands[h.PublicID] = h
	}
	stood := map[string]driver.Holder{}
	for _, h := range c.before {
		stood[h.PublicID] = h
		if _, ok := stands[h.PublicID]; !ok {
			row := claimRow(c.t, l.Name, h, now)
			row[stateColumn], row[trustColumn] = "gone", "-"
			add(row)
		}
	}
	for _, h := range l.Claims {
		row := claimRow(c.t, l.Name, h, now)
		if old, ok := stood[h.PublicID]; !ok || !alike(row, claimRow(c.t, l.Name, old, now)) {
			add(row)
		}
	}
	if len(l.Claims) == 0 && (c.before == nil || len(c.before) > 0) {
		row := slices.Repeat([]string{"-"}, len(columns))
		row[stateColumn], row[len(row)-1] = "free", ""
		add(row)
	}
	c.before = append([]driver.Holder{}, l.Claims...)
	return c.write(rows)
}

// alike reports whether two rows show the same but for what changes with time.
func alike(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] && i != ageColumn && i != trustColumn {
			return false
		}
	}
	return true
}

// write prints rows, and the header before the first of all. A column never moves to the left.
func (c *changes) write(rows [][]string) error {
	shown := len(logWidths)
	if c.output != "wide" {
		shown = narrow // the time stands where a list has the name
	}
	if c.widths == nil {
		c.widths = slices.Clone(logWidths[:shown])
		rows = slices.Insert(rows, 0, slices.Concat([]string{"TIME"}, header()[nameColumn+1:]))
	}
	for i := range rows {
		rows[i] = rows[i][:shown]
	}
	measure(c.widths, rows...)
	widths := slices.Clone(c.widths)
	if c.output != "wide" {
		fit(widths, c.t.width(), ownerColumn)
	}
	for _, row := range rows {
		if err := writeRow(c.t.out, row, widths); err != nil {
			return err
		}
	}
	return nil
}
