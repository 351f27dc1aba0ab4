package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

type breakCommand struct {
	Name  string `arg:"" help:"The lock's name."`
	ID    string `arg:"" optional:"" help:"The claim's public id, from ls or show."`
	Fence uint64 `arg:"" optional:"" help:"The claim's token, from ls or show; 0 for readers, permits and waiters."`
	Yes   bool   `help:"Break every holder of the name, after showing them; without id and token."`
	Now   bool   `help:"Let the next in at once, although the holder may still be at work: only its token keeps its writes out. What another program holds is broken so or not at all."`
}

// Run takes claims away from their owners, and waits until they are gone.
func (c *breakCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	v, l, err := common.line(ctx, t, c.Name)
	if err != nil {
		return err
	}
	defer v.close()
	targets, err := c.targets(l)
	if (c.ID == "" || err != nil) && !common.JSON { // who is in the way
		showLine(t, v, l)
	}
	if err != nil {
		return err
	}
	broken, failed := c.breakAll(ctx, v, targets)
	if len(broken) == 0 {
		return failed
	}
	if err := c.await(ctx, t, v, broken); err != nil {
		return errors.Join(err, failed)
	}
	if common.JSON {
		return errors.Join(failed, printJSON(t.out, asLineJSON(v, driver.Line{Name: c.Name, Fence: l.Fence, Claims: broken})))
	}
	for _, h := range broken {
		t.print("%s: broke %s of %s", c.Name, h.PublicID, by(h))
		if !h.Held {
			t.say("it waited: where the store keeps no note of that for its owner, it stands in line again, at the end")
		}
	}
	return failed
}

// breakAll breaks claims up to the first that it cannot break, and returns those that are broken.
func (c *breakCommand) breakAll(ctx context.Context, v *view, targets []driver.Holder) (broken []driver.Holder, err error) {
	for i, h := range targets {
		err := v.Break(ctx, c.Name, h.PublicID, h.Fence, c.Now)
		switch {
		case err == nil:
			continue
		case errors.Is(err, driver.ErrOnlyNow):
			at := *c
			at.Now = true
			err = usage("%w; to break it while its owner may still be at work: %s", err, at.typed(h))
		case errors.Is(err, driver.ErrRefused):
			err = &exitError{exitHeld, err}
		default:
			err = storeError(err)
		}
		return targets[:i], err
	}
	return targets, nil
}

// targets returns the claims to break: the one that is named, which must be the one that stands
// there, or with --yes all that hold.
func (c *breakCommand) targets(l driver.Line) ([]driver.Holder, error) {
	if c.ID != "" {
		for _, h := range l.Claims {
			if h.PublicID == c.ID && h.Fence == c.Fence {
				return []driver.Holder{h}, nil
			}
		}
		return nil, &exitError{exitHeld, fmt.Errorf("no claim %s with token %d stands in the line of %q: nothing was broken", c.ID, c.Fence, c.Name)}
	}
	var held []driver.Holder
	for _, h := range l.Claims {
		if h.Held {
			held = append(held, h)
		}
	}
	switch {
	case len(held) == 0:
		return nil, &exitError{exitHeld, fmt.Errorf("nobody holds %q: nothing was broken", c.Name)}
	case !c.Yes:
		return nil, usage("to break it: %s, or --yes for all that hold it", c.typed(held[0]))
	}
	return held, nil
}

// typed is the command that breaks a claim, or with --yes all that hold, as a person types it.
func (c *breakCommand) typed(h driver.Holder) string {
	words := "interlock break "
	if c.Now {
		words += "--now "
	}
	if c.Yes {
		words += "--yes "
	}
	if strings.HasPrefix(c.Name, "-") {
		words += "-- "
	}
	words += quoteWord(c.Name)
	if !c.Yes {
		words += fmt.Sprintf(" %s %d", h.PublicID, h.Fence)
	}
	return words
}

// await waits until the owners have released or their time is over, so that a script that goes on
// after the command finds the lock free.
func (c *breakCommand) await(ctx context.Context, t terminal, v *view, targets []driver.Holder) error {
	left := map[string]bool{}
	for _, h := range targets {
		left[h.PublicID] = true
	}
	said := false
	for l, err := range follow(ctx, v.Inspector, c.Name) {
		if err != nil {
			return storeError(fmt.Errorf("broken, but its end was not seen: %w", err))
		}
		still := 0
		for _, h := range l.Claims {
			if left[h.PublicID] {
				still++
			}
		}
		if still == 0 {
			return nil
		}
		if !said {
			t.say("waiting for the holder to stop; the next is let in then, or when its time is over")
			said = true
		}
	}
	return nil
}
