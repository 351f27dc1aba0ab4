package shedlock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// lines returns the rows that meet a condition and are held, as lines of one claim. Nobody waits where the table would show it.
func (d *Driver) lines(ctx context.Context, condition string) (lines []driver.Line, err error) {
	rows, err := d.rows(sessions.Within(ctx, d.options.Timeout), condition)
	for _, r := range rows {
		if r.live() {
			lines = append(lines, driver.Line{Name: r.name, Claims: []driver.Holder{*r.holder()}})
		}
	}
	slices.SortFunc(lines, func(a, b driver.Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines, err
}

// Lines implements driver.Inspector.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	lines, err := d.lines(ctx, d.live())
	if err != nil {
		return nil, fmt.Errorf("shedlock: list: %w", err)
	}
	return slices.DeleteFunc(lines, func(l driver.Line) bool { return !strings.HasPrefix(l.Name, prefix) }), nil
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	lines, err := d.lines(ctx, d.row(name))
	if err != nil {
		return driver.Line{Name: name}, fmt.Errorf("shedlock: look at %q: %w", name, err)
	}
	return append(lines, driver.Line{Name: name})[0], nil
}

// Break implements driver.Inspector. It frees the row, if it still is that of the same holder since the same time. There is no mark in the
// table that an owner would read, so a claim can only be broken now; an owner of ours hears of it by its next renewal.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	ctx = sessions.Within(ctx, d.options.Timeout)
	rows, err := d.rows(ctx, d.row(name))
	var n int64
	for _, r := range rows {
		switch {
		case !r.live() || r.holder().PublicID != publicID || fence != 0:
		case !now:
			return fmt.Errorf("shedlock: break %q: %w: ShedLock's table has no mark that an owner reads: it can only be broken now", name, driver.ErrRefused)
		default:
			n, err = d.exec(ctx, fmt.Sprintf(d.dialect.update+" set lock_until = %s where %s and %s and locked_by = %s and %s = %d", d.options.Table,
				d.dialect.now, d.row(name), d.live(), d.text(r.by), fmt.Sprintf(d.dialect.micros, "locked_at"), r.at))
		}
	}
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: no claim %s with token %d stands there", driver.ErrRefused, publicID, fence)
	}
	if err != nil {
		return fmt.Errorf("shedlock: break %q: %w", name, err)
	}
	return nil
}

// Watch implements driver.Watcher: it looks.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}

const watchPeriod = 250 * time.Millisecond
