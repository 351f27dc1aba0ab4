package zklock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Lines implements driver.Inspector. Names that the user may not read are left out.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	all := zk.Children(d.root(), false)
	err := d.reader.ask(ctx, zk.Sync(d.root()), all)
	if err == nil {
		err = all.Err
	}
	if err != nil {
		return nil, fmt.Errorf("zklock: list: %w", err)
	}
	var names, dirs []string
	for _, node := range all.Children {
		if name, ok := nameOf(node, d.base == ""); ok && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		dirs = append(dirs, d.dir(name))
	}
	lines, err := d.reader.lines(ctx, true, dirs...)
	var shown []driver.Line
	for i, claims := range lines {
		if len(claims) > 0 {
			shown = append(shown, lineOf(names[i], claims))
		}
	}
	if err != nil {
		return shown, fmt.Errorf("zklock: list: %w", err)
	}
	return shown, nil
}

// lineOf returns a line as it is shown to people.
func lineOf(name string, claims []seen) driver.Line {
	l := driver.Line{Name: name}
	for _, c := range claims {
		l.Claims = append(l.Claims, c.Holder)
	}
	return l
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	if err := checkName(name); err != nil {
		return driver.Line{Name: name}, err
	}
	lines, err := d.reader.lines(ctx, false, d.dir(name))
	if err != nil {
		return driver.Line{Name: name}, fmt.Errorf("zklock: look at %q: %w", name, err)
	}
	return lineOf(name, lines[0]), nil
}

// Break implements driver.Inspector. A claim is marked by a write to its node, of the data that it
// has; Curator's Revoker does the same.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	lines, err := d.reader.lines(ctx, false, d.dir(name))
	if err != nil {
		return fmt.Errorf("zklock: break %q: %w", name, err)
	}
	at := slices.IndexFunc(lines[0], func(c seen) bool { return c.PublicID == publicID && c.Fence == fence })
	if at < 0 {
		return fmt.Errorf("zklock: break %q: %w: no claim %s with token %d stands there", name, driver.ErrRefused, publicID, fence)
	}
	c := lines[0][at]
	var call *zk.Call
	switch {
	case !c.Held && c.way != "" && c.kind != driver.Permit: // as long as that is there it is not held
		call = zk.Multi(zk.Check(c.way, -1), zk.Delete(c.nodes[0], -1))
	case !c.Held || now:
		call = zk.Multi(deletes(c.nodes, -1)...)
	case c.Foreign:
		return fmt.Errorf("zklock: break %q: %w: another program holds it and reads no marks", name, driver.ErrOnlyNow)
	default:
		call = zk.Set(c.nodes[0], c.get.Data, -1)
	}
	if err = d.reader.ask(ctx, call); err == nil {
		if err = call.Err; call.Code == zk.NoNode {
			err = fmt.Errorf("%w: the line has just changed: look again", driver.ErrRefused)
		}
	}
	if err != nil {
		return fmt.Errorf("zklock: break %q: %w", name, err)
	}
	return nil
}

// watchPeriod is how often Watch reads.
const watchPeriod = 100 * time.Millisecond

// Watch implements driver.Watcher: it reads the line ten times a second and yields what has
// changed.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
