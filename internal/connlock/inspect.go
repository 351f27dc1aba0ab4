package connlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Line implements driver.Inspector.
func (d *Sessions) Line(ctx context.Context, name string) (driver.Line, error) {
	l := driver.Line{Name: name}
	all, err := d.Store.Stands(ctx, name)
	if err != nil {
		return l, fmt.Errorf("%s: look at %q: %w", d.Package, name, err)
	}
	for _, at := range all {
		l.Claims = append(l.Claims, at.Holder)
	}
	return l, nil
}

// Lines implements driver.Inspector: a server has keys, and no names.
func (d *Sessions) Lines(context.Context, string) ([]driver.Line, error) {
	return nil, fmt.Errorf("%s: list: technique %s keeps no names: ask for one: %w", d.Package, d.Technique, errors.ErrUnsupported)
}

// Break implements driver.Inspector: it ends the connection, where that is not known to have
// anything else. Its owner is told by that.
func (d *Sessions) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	all, err := d.Store.Stands(ctx, name)
	if err == nil {
		err = fmt.Errorf("%w: no claim %s with token %d stands there", driver.ErrRefused, publicID, fence)
	}
	for _, at := range all {
		switch {
		case at.PublicID != publicID || fence != 0:
		case at.Held && !now:
			err = fmt.Errorf("%w: one by technique %s cannot be marked, and its owner not be asked", driver.ErrOnlyNow, d.Technique)
		case at.Also > 0:
			err = fmt.Errorf("the connection %s has %d other locks, which would go with this one: %w", at.Conn, at.Also, errors.ErrUnsupported)
		default:
			err = d.Store.End(ctx, at.Conn)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: break %q: %w", d.Package, name, err)
	}
	return nil
}

// Watch implements driver.Watcher: it looks ten times a second and yields what has changed.
func (d *Sessions) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, 100*time.Millisecond, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
