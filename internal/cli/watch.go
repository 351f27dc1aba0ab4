package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/interlock-go/interlock/driver"
)

type watchCommand struct {
	Name string `arg:"" help:"The lock's name."`
}

// Run prints the line now and after every change, until it is interrupted.
func (c *watchCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	i, done, name, err := line.inspector(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	for l, err := range follow(ctx, i, c.Name) {
		if errors.Is(err, context.Canceled) {
			return nil // Ctrl-C is how one ends it
		}
		if err != nil {
			return storeError(err)
		}
		if !line.JSON {
			fmt.Fprintf(t.out, "%s  ", time.Now().Format("15:04:05.000"))
		}
		if err := t.show(l, name, line.JSON); err != nil {
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
