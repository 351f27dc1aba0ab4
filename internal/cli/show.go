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

// Run shows one common.
func (c *showCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	v, l, err := common.line(ctx, t, c.Name)
	if err != nil {
		return err
	}
	defer v.close()
	if common.JSON {
		return printJSON(t.out, asLineJSON(v, l))
	}
	showLine(t, v, l)
	return nil
}
