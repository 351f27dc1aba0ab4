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
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	d.mu.Lock()
	reader, closed := d.reader, d.closed
	d.mu.Unlock()
	if closed {
		return errClosed
	}
	if reader == nil {
		var err error
		o := d.connection(readerTimeout)
		o.Heartbeat = true
		if reader, err = zk.Dial(ctx, o); err != nil {
			return err
		}
		d.mu.Lock()
		other := d.reader
		if closed = d.closed; other == nil && !closed {
			d.reader = reader
		}
		d.mu.Unlock()
		if closed || other != nil { // somebody else was quicker
			_ = reader.Close(ctx)
			reader = other
		}
		if closed {
			return errClosed
		}
	}
	err := reader.Do(ctx, calls...)
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

// seen is a claim with its place.
type seen struct {
	driver.Holder
	place
	get *zk.Call // of the first of its nodes
	way string   // the node of what is in its way
}

// lookBatch is how many reads go in one flight.
const lookBatch = 1000

// lines reads the lines of locks by their nodes. One that nobody stands in is empty.
func (d *Driver) lines(ctx context.Context, dirs []string) ([][]seen, error) {
	tops, parts := make([]*zk.Call, len(dirs)), map[int][]*zk.Call{}
	for i, dir := range dirs {
		tops[i] = zk.Children(dir, false)
	}
	if err := d.batches(ctx, append([]*zk.Call{zk.Sync(d.root())}, tops...)); err != nil {
		return nil, err
	}
	var calls []*zk.Call
	for i, dir := range dirs {
		if slices.Contains(tops[i].Children, leasesPart[1:]) {
			parts[i] = []*zk.Call{zk.Children(dir+waitingPart, false), zk.Children(dir+leasesPart, false)}
			calls = append(calls, parts[i]...)
		}
	}
	if err := d.batches(ctx, calls); err != nil {
		return nil, err
	}
	places := make([][]place, len(dirs))
	var gets []*zk.Call
	for i, dir := range dirs {
		for _, call := range append([]*zk.Call{tops[i]}, parts[i]...) {
			if call.Err != nil && call.Code != zk.NoNode {
				return nil, call.Err
			}
		}
		places[i] = placesOf(dir, tops[i].Children)
		if p := parts[i]; p != nil {
			places[i] = append(semaphoreOf(dir, p[0].Children, p[1].Children, p[0].Stat.Czxid), places[i]...)
		}
		for _, p := range places[i] {
			gets = append(gets, zk.Get(p.node, false))
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
			case get.Err != nil:
				return lines, get.Err
			}
			line = append(line, p)
			at := len(line) - 1
			s := seen{holderOf(p, get, holds(line, at)), p, get, ""}
			if way := inWay(line, at); !s.Held && way >= 0 {
				s.way = line[way].node
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

// Lines implements driver.Inspector.
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
		if name, ok := nameOf(node, d.base == ""); ok && strings.HasPrefix(name, prefix) && (d.base != "" || node != "zookeeper") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		dirs = append(dirs, d.dir(name))
	}
	lines, err := d.lines(ctx, dirs)
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
	lines, err := d.lines(ctx, []string{d.dir(name)})
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
	lines, err := d.lines(ctx, []string{d.dir(name)})
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
		call = zk.Multi(zk.Check(c.way, -1), zk.Delete(c.node, -1))
	case !c.Held || now:
		call = zk.Multi(deletes(c.nodes(), -1)...)
	case c.Foreign:
		return fmt.Errorf("zklock: break %q: %w: another program holds it and reads no marks: it can only be broken at once", name, driver.ErrRefused)
	default:
		call = zk.Set(c.node, c.get.Data, -1)
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
