package pglock

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Lines implements driver.Inspector.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	rows, err := d.look(ctx, fmt.Sprintf("select encode(name, 'hex'), fence, %[1]sshown(line, %[1]sus()) from %[1]slock "+
		"where cardinality(line) > 0 and name >= decode('%[2]x', 'hex') and substr(name, 1, %[3]d) = decode('%[2]x', 'hex') order by name", d.in, prefix, len(prefix)))
	if err != nil {
		return nil, fmt.Errorf("pglock: list: %w", err)
	}
	var lines []driver.Line
	for _, f := range rows {
		name, err := hex.DecodeString(string(f[0]))
		if err != nil {
			return lines, fmt.Errorf("pglock: list: %w", err)
		}
		claims, err := holders(f[2])
		if err != nil {
			return lines, fmt.Errorf("%w: at %q", err, name)
		}
		if len(claims) > 0 {
			lines = append(lines, driver.Line{Name: string(name), Fence: uint64(number(f[1])), Claims: claims}) //nolint:gosec // never negative
		}
	}
	return lines, nil
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	l := driver.Line{Name: name}
	rows, err := d.look(ctx, fmt.Sprintf("select fence, %[1]sshown(line, %[1]sus()) from %[1]slock where name = decode('%[2]x', 'hex')", d.in, name))
	if err != nil {
		return l, fmt.Errorf("pglock: look at %q: %w", name, err)
	}
	if len(rows) == 1 {
		l.Fence = uint64(number(rows[0][0])) //nolint:gosec // never negative
		l.Claims, err = holders(rows[0][1])
	}
	return l, err
}

// Break implements driver.Inspector. The owner of a claim that holds learns of it by its next
// renewal.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	rows, err := d.look(ctx, fmt.Sprintf("select %sbreak(decode('%x', 'hex'), encode(decode('%x', 'hex'), 'escape'), %d, %t)", d.in, name, publicID, fence, now))
	if err != nil {
		return fmt.Errorf("pglock: break %q: %w", name, err)
	}
	if string(rows[0][0]) != "t" {
		return fmt.Errorf("pglock: break %q: %w: no claim %s with token %d stands there", name, driver.ErrRefused, publicID, fence)
	}
	return nil
}

// watchPeriod is how often Watch reads the lines.
const watchPeriod = 100 * time.Millisecond

// Watch implements driver.Watcher: it reads the lines ten times a second and yields what has
// changed.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
