package cli

import (
	"context"
)

type showCommand struct {
	Name string `arg:"" help:"The lock's name."`
}

// Help implements kong.HelpProvider.
func (*showCommand) Help() string {
	return "Says in which store the name stands and where there: the path of its file, its key, its node, or its name where that is what stands in a table. " +
		"Then everything about each who holds or waits, in order, nothing cut.\n\n" + columnsHelp("")
}

// Run shows one line.
func (c *showCommand) Run(ctx context.Context, t terminal, line *commonFlags) error {
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
		return printJSON(t.out, asLineJSON(v, l))
	}
	showLine(t, v, l)
	return nil
}
