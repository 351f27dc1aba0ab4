package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/opening"
)

// Open opens the store that url names and returns a client of it, which closes the store with
// itself. The package of the store must be imported, if only for its scheme; an unknown scheme's
// error names the known ones.
//
// A store that cannot be reached, since it restarts, fails over or is not there yet, is tried again
// until Options.Patience is over or ctx ends; where no Patience is chosen, for 15 s, or for the TTL
// where that is longer. The first try may take as long as the store's own timeout. The error then
// matches ErrUnavailable and says for how long it was tried and what the last try met. Whatever
// else keeps the store from being opened is told at once: a wrong URL, a password that is refused,
// a missing right, a server that cannot have locks.
//
// ctx bounds the opening only.
func Open(ctx context.Context, url string, o *Options) (*Client, error) {
	chosen, err := o.chosen()
	if err != nil { // before anybody waits for a store
		return nil, err
	}
	patience := cmp.Or(chosen.Patience, max(chosen.TTL, opening.Patience))
	d, err := opening.Within(ctx, patience, func(ctx context.Context) (driver.Driver, error) { return driver.OpenURL(ctx, url) })
	switch {
	case errors.Is(err, driver.ErrRefused):
		return nil, err
	case errors.Is(err, driver.ErrNotSent), errors.Is(err, driver.ErrUnable):
		return nil, fmt.Errorf("interlock: open: %w", fault.Unavailable(err))
	case err != nil:
		return nil, err
	}
	c, err := New(d, o)
	if err != nil {
		return nil, closeAfter(ctx, d, err)
	}
	c.ownsDriver = true
	return c, nil
}

// closeAfter closes a store that turned out to be of no use, and returns why.
func closeAfter(ctx context.Context, d driver.Driver, why error) error {
	_ = d.Close(ctx) // why is what the caller must hear
	return why
}
