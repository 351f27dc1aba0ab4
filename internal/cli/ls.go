package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

type lsCommand struct {
	Prefix string `arg:"" optional:"" help:"Only names that begin so."`
	outputFlag
}

// Help implements kong.HelpProvider.
func (*lsCommand) Help() string {
	return "Lists each name that somebody holds, with those who wait for it, in order. Characters that cannot be seen, or that would tell a terminal something, are shown as in Go: \\u200b. " +
		"With --json everything is as it stands in the store.\n\n" + columnsHelp(", from ID on with -o wide")
}

// Run lists all lines with claims: what can be listed, and then what is wrong with the rest.
func (c *lsCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	v, err := line.view(ctx, t)
	if err != nil {
		return err
	}
	defer v.close()
	lines, err := v.Lines(ctx, c.Prefix)
	if err != nil {
		err = storeError(err)
		if len(lines) == 0 {
			return err
		}
	}
	switch {
	case line.JSON:
		return errors.Join(printJSON(t.out, v.jsonLines(lines)), err)
	case len(lines) == 0:
		of := ""
		if c.Prefix != "" {
			of = fmt.Sprintf(" for a name that begins with %q", c.Prefix)
		}
		t.say("nobody holds or waits%s in %s", of, v.store)
	default:
		t.claims(lines, c.Output)
	}
	return err
}

type showCommand struct {
	Name string `arg:"" help:"The lock's name."`
}

// Help implements kong.HelpProvider.
func (*showCommand) Help() string {
	return "Says in which store the name stands and where there: the path of its file, its key, its node, or its name where that is what stands in a table. " +
		"Then everything about each who holds or waits, in order, nothing cut.\n\n" + columnsHelp("")
}

// Run shows one line.
func (c *showCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	if err := named(c.Name); err != nil {
		return err
	}
	v, err := line.view(ctx, t)
	if err != nil {
		return err
	}
	defer v.close()
	l, err := v.Line(ctx, c.Name)
	switch {
	case err != nil:
		return storeError(err)
	case line.JSON:
		return printJSON(t.out, v.asJSON(l))
	}
	t.show(v, l)
	return nil
}

// show prints one line for people: where it stands, and all about its claims.
func (t terminal) show(v *view, l driver.Line) {
	upTo := ""
	if l.Fence > 0 {
		upTo = fmt.Sprintf(", tokens up to %d", l.Fence)
	}
	t.print("%s in %s%s", l.Name, v.store, upTo)
	t.print("key: %s", v.key(l.Name))
	if len(l.Claims) == 0 {
		t.print("nobody holds it and nobody waits")
		return
	}
	rows := [][]string{header()[nameColumn+1:]}
	now := time.Now()
	for _, h := range l.Claims {
		rows = append(rows, t.row(l.Name, h, now)[nameColumn+1:])
	}
	printTable(t.out, rows, 0)
}
