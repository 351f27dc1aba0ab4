package shedlock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// lines returns the rows that are held and meet a condition, as lines of one claim. Nobody waits
// where the table would show it.
func (d *Driver) lines(ctx context.Context, condition string) (lines []driver.Line, err error) {
	rows, _, err := d.table.rows(ctx, d.table.sql("lock_until > :now and %s", condition))
	for _, r := range rows {
		lines = append(lines, driver.Line{Name: r.name, Claims: []driver.Holder{*r.holder()}})
	}
	if err != nil {
		return nil, fmt.Errorf("shedlock: look: %w", err)
	}
	slices.SortFunc(lines, func(a, b driver.Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines, nil
}

// Lines implements driver.Inspector.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	lines, err := d.lines(ctx, "1 = 1")
	return slices.DeleteFunc(lines, func(l driver.Line) bool { return !strings.HasPrefix(l.Name, prefix) }), err
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	lines, err := d.lines(ctx, d.table.row(name))
	return append(lines, driver.Line{Name: name})[0], err
}

// Break implements driver.Inspector. It frees the row, if it still is that of the same holder since
// the same time. There is no mark in the table that an owner would read, so a claim can only be
// broken now; an owner of ours hears of it by its next renewal.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	rows, _, err := d.table.rows(ctx, d.table.row(name))
	var n int64
	for _, r := range rows {
		switch {
		case !r.live || r.holder().PublicID != publicID || fence != 0:
		case !now:
			err = fmt.Errorf("%w: ShedLock's table has no mark that an owner reads", driver.ErrOnlyNow)
		default:
			n, err = d.table.exec(ctx, release, fmt.Sprintf("%s and locked_by = %s and locked_at = %s", d.table.row(name), d.table.sql(":text", r.by), moment(r.at)))
		}
	}
	if err == nil && n == 0 {
		err = refused("no claim %s with token %d stands there", publicID, fence)
	}
	if err != nil {
		return fmt.Errorf("shedlock: break %q: %w", name, err)
	}
	return nil
}

// Watch implements driver.Watcher: it looks.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, latest, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
