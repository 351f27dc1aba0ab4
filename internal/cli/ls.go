package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

type lsCommand struct {
	Prefix string `arg:"" optional:"" help:"Only names that begin so."`
}

// Run lists all lines with claims: what can be listed, and then what is wrong with the rest.
func (c *lsCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	i, done, name, err := line.inspector(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	lines, err := i.Lines(ctx, c.Prefix)
	if err != nil {
		err = storeError(err)
		if len(lines) == 0 {
			return err
		}
	}
	if line.JSON {
		return errors.Join(printJSON(t.out, jsonLines(lines)), err)
	}
	if len(lines) == 0 {
		fmt.Fprintf(t.err, "interlock: nobody holds or waits in %s\n", name)
		return nil
	}
	t.claims(lines)
	return err
}

type showCommand struct {
	Name string `arg:"" help:"The lock's name."`
}

// Run shows one line.
func (c *showCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	l, name, err := line.look(ctx, t, c.Name)
	if err != nil {
		return err
	}
	return t.show(l, name, line.JSON)
}

// show prints one line for people or programs.
func (t terminal) show(l driver.Line, store string, asJSON bool) error {
	if asJSON {
		return printJSON(t.out, jsonLine(l))
	}
	fmt.Fprintf(t.out, "%s in %s", l.Name, store)
	if l.Fence > 0 {
		fmt.Fprintf(t.out, ", tokens up to %d", l.Fence)
	}
	fmt.Fprintln(t.out)
	if len(l.Claims) == 0 {
		fmt.Fprintln(t.out, "nobody holds it and nobody waits")
		return nil
	}
	t.claims([]driver.Line{l})
	return nil
}
