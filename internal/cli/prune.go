package cli

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

type pruneCommand struct {
	Prefix string        `arg:"" optional:"" help:"Only names that begin so."`
	Idle   time.Duration `default:"168h" help:"Only names that were last granted longer ago than this."`
}

// Run removes what the store keeps of names that nobody locks any more.
func (c *pruneCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	d, name, err := common.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close(context.WithoutCancel(ctx)) }() // nothing of ours is in the store
	removed, err := 0, errors.ErrUnsupported
	if p, ok := d.(driver.Pruner); ok {
		removed, err = p.Prune(ctx, c.Prefix, c.Idle)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return usage("%s keeps nothing of idle names that could go: want a store redis:// or file:", name)
	case errors.Is(err, driver.ErrRefused):
		return usage("%v", err)
	case err != nil:
		return storeError(err)
	case common.JSON:
		return printJSON(t.out, struct {
			Removed int `json:"removed"`
		}{removed})
	}
	names := "names"
	if removed == 1 {
		names = "name"
	}
	t.print("removed what %s kept of %d %s", name, removed, names)
	return nil
}
