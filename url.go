package interlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Open opens the store that url names and returns a client of it, which closes the store with itself. The package of
// the store must be imported, if only for its scheme; an unknown scheme's error names the known ones.
//
// ctx bounds the opening only.
func Open(ctx context.Context, url string, o *Options) (*Client, error) {
	d, err := driver.OpenURL(ctx, url)
	if err != nil {
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
