package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

type electCommand struct {
	Name    string   `arg:"" help:"The election's name."`
	Command []string `arg:"" optional:"" passthrough:"partial" help:"The command to run while leading, after --. Without one: print who leads."`
	holdFlags
}

// Help implements kong.HelpProvider.
func (*electCommand) Help() string {
	return `Stands for election, runs the command while leading, stops it when the leadership is lost, and stands again. It ends when the command ends by itself, with its exit status, or by a signal.` + "\n\n" + statusHelp()
}

// Run stands until the command has ended by itself.
func (c *electCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	return c.status(c.run(ctx, t, common))
}

func (c *electCommand) run(ctx context.Context, t terminal, common *commonFlags) error {
	loud := t
	if c.Quiet {
		t = t.mute()
	}
	words, err := commandWords(common.args, "elect", c.Name, c.Command)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return c.leader(ctx, t, common)
	}
	options, err := c.options(words)
	if err != nil {
		return err
	}
	j := &job{wanted: wanted{name: c.Name, kind: driver.Mutex}, storeFlags: &common.storeFlags, t: t, loud: loud, args: words, flags: &c.holdFlags, again: true}
	defer j.close()
	return j.run(ctx, func(client *interlock.Client) (locker, error) {
		m := client.Mutex(c.Name, options...)
		return m.Lock, m.Err()
	})
}

// leader prints who leads; that nobody does is exit status 75.
func (c *electCommand) leader(ctx context.Context, t terminal, common *commonFlags) error {
	v, l, err := common.line(ctx, t, c.Name)
	if err != nil {
		return err
	}
	defer v.close()
	for _, h := range l.Claims {
		if !h.Held || !h.Kind.Exclusive() {
			continue
		}
		if common.JSON {
			return printJSON(t.out, asLineJSON(v, driver.Line{Name: l.Name, Fence: l.Fence, Claims: []driver.Holder{h}}))
		}
		text := fmt.Sprintf("%s leads %s, token %s", by(h), c.Name, token(h.Fence))
		if !h.Since.IsZero() {
			text += ", for " + short(time.Since(h.Since))
		}
		t.print("%s", text)
		return nil
	}
	return &exitError{exitHeld, fmt.Errorf("nobody leads %q, in %s", c.Name, v.store)}
}
