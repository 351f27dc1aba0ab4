package zklock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// readerTimeout is that of the session by which people look. It is kept alive, and ends with the driver.
const readerTimeout = 10 * time.Second

// ask sends calls that only look, or break, in a session without claims.
func (d *Driver) ask(ctx context.Context, calls ...*zk.Call) error {
	ctx, cancel := d.within(ctx)
	defer cancel()
	reader, err := d.view(ctx)
	if err != nil {
		return err
	}
	err = reader.Do(ctx, calls...)
	if errors.Is(err, driver.ErrSessionLost) { // which has nothing to do with any claim
		d.mu.Lock()
		if d.reader == reader {
			d.reader = nil
		}
		d.mu.Unlock()
		return fmt.Errorf("%w: the session for looks has expired: %s", driver.ErrNotSent, err.Error())
	}
	return err
}

// view is the session for looks. Who comes while it is being opened waits for that, as for an answer.
func (d *Driver) view(ctx context.Context) (*zk.Client, error) {
	select {
	case d.opening <- struct{}{}:
		defer func() { <-d.opening }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	d.mu.Lock()
	reader, closed := d.reader, d.closed
	d.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if reader != nil {
		return reader, nil
	}
	o := d.connection(readerTimeout)
	o.Heartbeat = true
	reader, err := zk.Dial(ctx, o) // without the mutex: Close need not wait for it
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	if closed = d.closed; !closed {
		d.reader = reader
	}
	d.mu.Unlock()
	if closed {
		_ = reader.Close(ctx)
		return nil, errClosed
	}
	return reader, nil
}

// seen is a claim with its place.
type seen struct {
	driver.Holder
	place
	get *zk.Call // of the first of its nodes
	way string   // the node of what is in its way
}

// lookBatch is how many reads go in one flight.
const lookBatch = 1000

// lines reads the lines of locks by their nodes. One that nobody stands in is empty, and so is one that we may not read, where that is wanted. Of a claim that we may not
// read no more is known than its node's name.
func (d *Driver) lines(ctx context.Context, hidden bool, dirs ...string) ([][]seen, error) {
	calls := []*zk.Call{zk.Sync(d.root())}
	for _, dir := range dirs {
		calls = append(calls, zk.Children(dir+waitingPart, false), zk.Children(dir+leasesPart, false), zk.Children(dir, false))
	}
	if err := d.batches(ctx, calls); err != nil {
		return nil, err
	}
	for _, call := range calls {
		if call.Err != nil && call.Code != zk.NoNode && (call.Code != zk.NoAuth || !hidden) {
			return nil, call.Err
		}
	}
	places := make([][]place, len(dirs))
	var gets []*zk.Call
	for i, dir := range dirs {
		waits, leases, top := calls[1+3*i], calls[2+3*i], calls[3+3*i]
		places[i] = append(semaphoreOf(dir, waits.Children, leases.Children, waits.Stat.Czxid), placesOf(dir, top.Children)...)
		for _, p := range places[i] {
			gets = append(gets, zk.Get(p.nodes[0], false))
		}
	}
	if err := d.batches(ctx, gets); err != nil {
		return nil, err
	}
	lines := make([][]seen, len(dirs))
	for i := range dirs {
		var line []place
		for _, p := range places[i] {
			get := gets[0]
			gets = gets[1:]
			switch {
			case get.Code == zk.NoNode, get.Err == nil && get.Stat.Owner == 0:
				continue
			case get.Err != nil && get.Code != zk.NoAuth:
				return lines, get.Err
			}
			line = append(line, p)
			at := len(line) - 1
			s := seen{holderOf(p, get, holds(line, at)), p, get, ""}
			if way := inWay(line, at); !s.Held && way >= 0 {
				s.way = line[way].nodes[0]
			}
			lines[i] = append(lines[i], s)
		}
	}
	return lines, nil
}

func (d *Driver) batches(ctx context.Context, calls []*zk.Call) error {
	for batch := range slices.Chunk(calls, lookBatch) {
		if err := d.ask(ctx, batch...); err != nil {
			return err
		}
	}
	return nil
}

// Lines implements driver.Inspector. Names that the user may not read are left out.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	all := zk.Children(d.root(), false)
	err := d.ask(ctx, zk.Sync(d.root()), all)
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
	lines, err := d.lines(ctx, true, dirs...)
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
	lines, err := d.lines(ctx, false, d.dir(name))
	if err != nil {
		return driver.Line{Name: name}, fmt.Errorf("zklock: look at %q: %w", name, err)
	}
	return lineOf(name, lines[0]), nil
}

// Break implements driver.Inspector. What marks a claim is a write to its node, of what stands there; so does Curator's Revoker.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	lines, err := d.lines(ctx, false, d.dir(name))
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
	case !c.Held && c.way != "" && c.kind != driver.Permit: // as long as that is there it does not hold
		call = zk.Multi(zk.Check(c.way, -1), zk.Delete(c.nodes[0], -1))
	case !c.Held || now:
		call = zk.Multi(deletes(c.nodes, -1)...)
	case c.Foreign:
		return fmt.Errorf("zklock: break %q: %w: another program holds it and reads no marks", name, driver.ErrOnlyNow)
	default:
		call = zk.Set(c.nodes[0], c.get.Data, -1)
	}
	if err = d.ask(ctx, call); err == nil {
		if err = call.Err; call.Code == zk.NoNode {
			err = fmt.Errorf("%w: the line has just changed: look again", driver.ErrRefused)
		}
	}
	if err != nil {
		return fmt.Errorf("zklock: break %q: %w", name, err)
	}
	return nil
}

// watchPeriod is how often Watch looks.
const watchPeriod = 100 * time.Millisecond

// Watch implements driver.Watcher: it looks ten times a second and yields what has changed.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
