package cli

import (
	"context"
	"errors"
	"fmt"
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
func (c *lsCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	v, err := common.view(ctx, t)
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
	case common.JSON:
		return errors.Join(printJSON(t.out, asLinesJSON(v, lines)), err)
	case len(lines) == 0:
		of := ""
		if c.Prefix != "" {
			of = fmt.Sprintf(" for a name that begins with %q", c.Prefix)
		}
		t.say("nobody holds or waits%s in %s", of, v.store)
	default:
		printClaims(t, lines, c.Output)
	}
	return err
}
