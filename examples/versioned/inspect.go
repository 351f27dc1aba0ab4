package versioned

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// The optional half: with it people can look into a line, and take a claim away.
var _ driver.Inspector = (*Driver)(nil)

// Lines implements [driver.Inspector]: a [Table] cannot list its rows.
func (d *Driver) Lines(context.Context, string) ([]driver.Line, error) {
	return nil, fmt.Errorf("versioned: rows cannot be listed: %w", errors.ErrUnsupported)
}

// Line implements [driver.Inspector].
func (d *Driver) Line(ctx context.Context, name string) (l driver.Line, err error) {
	err = d.update(ctx, name, func(doc *document) (bool, error) {
		l = driver.Line{Name: name, Fence: doc.Fence}
		for _, c := range doc.Claims {
			l.Claims = append(l.Claims, doc.describe(c))
		}
		return false, nil
	})
	return l, err
}

// Break implements [driver.Inspector]. The owner of a claim that is marked hears of it at its next Renew.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	return d.update(ctx, name, func(doc *document) (bool, error) {
		_, err := doc.Break(publicID, fence, now)
		return err == nil, err
	})
}
