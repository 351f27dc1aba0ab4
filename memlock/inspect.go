package memlock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Lines implements driver.Inspector.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	if err := d.wire.send(ctx); err != nil {
		return nil, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	var lines []driver.Line
	for name := range d.store.lines {
		if l := d.store.show(name); strings.HasPrefix(name, prefix) && len(l.Claims) > 0 {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b driver.Line) int { return strings.Compare(a.Name, b.Name) })
	return lines, nil
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	if err := d.wire.send(ctx); err != nil {
		return driver.Line{}, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.store.show(name), nil
}

func (st *store) show(name string) driver.Line {
	if st.lines[name] == nil {
		return driver.Line{Name: name}
	}
	e := st.at(name)
	l := driver.Line{Name: name, Fence: e.Fence}
	for _, c := range e.Claims {
		l.Claims = append(l.Claims, st.describe(c))
	}
	return l
}

// Break implements driver.Inspector.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if err := d.wire.send(ctx); err != nil {
		return err
	}
	err := d.store.breaks(name, publicID, fence, now)
	if werr := d.wire.receive(ctx); werr != nil {
		return werr
	}
	return err
}

func (st *store) breaks(name, publicID string, fence uint64, now bool) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	e := st.at(name)
	c, err := e.Break(publicID, fence, now)
	if err != nil {
		return fmt.Errorf("memlock: break: %w", err)
	}
	if s := st.sessions[c.Session]; s != nil {
		s.forget(c.ID, driver.ErrBroken)
		select {
		case s.nudge <- struct{}{}:
		default:
		}
	}
	st.settle(e)
	return nil
}

// Watch implements driver.Watcher.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return func(yield func(driver.Line, error) bool) {
		changed := make(chan struct{}, 1)
		d.store.mu.Lock()
		d.store.watchers[name] = append(d.store.watchers[name], changed)
		if e := d.store.lines[name]; e != nil {
			d.store.arm(e)
		}
		d.store.mu.Unlock()
		defer func() {
			d.store.mu.Lock()
			defer d.store.mu.Unlock()
			d.store.watchers[name] = slices.DeleteFunc(d.store.watchers[name], func(c chan struct{}) bool { return c == changed })
		}()
		for {
			l, err := d.Line(ctx, name)
			if !yield(l, err) || err != nil {
				return
			}
			select {
			case <-ctx.Done():
				yield(driver.Line{}, ctx.Err())
				return
			case <-changed:
			}
		}
	}
}
