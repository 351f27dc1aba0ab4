package cli

import (
	"context"
	"errors"
	"iter"
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
func (c *watchCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	if err := named(c.Name); err != nil {
		return err
	}
	v, err := line.view(ctx, t)
	if err != nil {
		return err
	}
	defer v.close()
	changes := changes{t: t, output: c.Output}
	tell := func(text string) { t.say("%s", text) }
	for l, err := range v.lasting(ctx, c.Name, tell) {
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // Ctrl-C is how one ends it
		case err != nil:
			return storeError(err)
		case line.JSON:
			err = printJSON(t.out, seenJSON{time.Now(), v.asJSON(l)})
		default:
			err = changes.print(l, time.Now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow yields the line of name now and whenever it has changed: by events, or by asking each second where the store
// has none.
func follow(ctx context.Context, i driver.Inspector, name string) iter.Seq2[driver.Line, error] {
	if w, ok := i.(driver.Watcher); ok {
		return w.Watch(ctx, name)
	}
	return driver.PollLine(ctx, time.Second, func(ctx context.Context) (driver.Line, error) { return i.Line(ctx, name) })
}

// away is how long lasting waits before it asks a store again.
const away = time.Second

// lasting is follow for who has seen the line once and stays, whatever becomes of the store: while it cannot be reached, it is asked again each
// second, and it tells when that begins and when it is over. What has changed meanwhile is in the next line, which comes in any case.
func (v *view) lasting(ctx context.Context, name string, tell func(string)) iter.Seq2[driver.Line, error] {
	return func(yield func(driver.Line, error) bool) {
		seen, gone := false, false
		for {
			for l, err := range follow(ctx, v.Inspector, name) {
				if err != nil && (!seen || ctx.Err() != nil || !passes(err)) {
					yield(driver.Line{}, err)
					return
				}
				switch {
				case err != nil && !gone:
					tell("the store is away: " + oneLine(inStore(err, v.store)) + "; watching goes on when it is there again")
				case err == nil && gone:
					tell("the store is there again: " + v.store)
				}
				seen, gone = true, err != nil
				if err == nil && !yield(l, nil) {
					return
				}
			}
			pause := time.NewTimer(away)
			select {
			case <-ctx.Done(): // which the store's next answer says
			case <-pause.C:
			}
			pause.Stop()
		}
	}
}

// passes reports whether an error of a store may be over without anybody's doing.
func passes(err error) bool {
	return statusOf(storeError(err)) == exitStore && !errors.Is(err, driver.ErrRefused) && !errors.Is(err, errors.ErrUnsupported)
}

// changes prints the states of a line as a log: the header once, who stands there, and then who is gone, has come, or is shown otherwise
// than before. What a person can see alone makes a row: ages and trust are always others.
type changes struct {
	t      terminal
	output string
	widths []int
	before []driver.Holder // who stood there; nil before the first state
}

// logWidths are what columns of a log take from the beginning, since nobody knows what is yet to come: the time, and then those of a claim
// without its name.
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
			row := c.t.row(l.Name, h, now)
			row[stateColumn], row[trustColumn] = "gone", "-"
			add(row)
		}
	}
	for _, h := range l.Claims {
		row := c.t.row(l.Name, h, now)
		if old, ok := stood[h.PublicID]; !ok || !alike(row, c.t.row(l.Name, old, now)) {
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

// write prints rows, and the header before the first of all. Columns keep the place that they once have.
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
