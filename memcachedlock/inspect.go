package memcachedlock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/sessions"
)

// look returns what stands at a key, or nil.
func (d *Driver) look(ctx context.Context, key string) (*item, error) {
	replies, err := d.server(key).Do(sessions.Within(ctx, d.options.Timeout), memcache.Get(key))
	if err == nil {
		err = replies[0].Err
	}
	if err != nil || replies[0].Status != memcache.Value {
		return nil, err
	}
	return read(replies[0])
}

// Lines implements driver.Inspector. A server lists all keys that it has, which takes long where they are many.
func (d *Driver) Lines(ctx context.Context, prefix string) (lines []driver.Line, err error) {
	for _, s := range d.servers {
		keys, err := s.Keys(ctx, d.options.Prefix)
		if err != nil {
			return lines, fmt.Errorf("memcachedlock: list: %s: %w", s.Addr(), err)
		}
		for _, key := range keys {
			it, err := d.look(ctx, key)
			if err != nil {
				return lines, fmt.Errorf("memcachedlock: list: %q: %w", key, err)
			}
			if it == nil || it.foreign && d.options.Prefix == "" {
				continue // gone by now, or anything
			}
			name := strings.TrimPrefix(key, d.options.Prefix)
			if !it.foreign {
				name = it.Name
			}
			if strings.HasPrefix(name, prefix) {
				lines = append(lines, driver.Line{Name: name, Claims: []driver.Holder{*it.holder()}})
			}
		}
	}
	slices.SortFunc(lines, func(a, b driver.Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines, nil
}

// Line implements driver.Inspector. Who waits stands nowhere.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	l := driver.Line{Name: name}
	key := d.Key(name)
	err := memcache.CheckKey(key)
	if err == nil {
		var it *item
		if it, err = d.look(ctx, key); it != nil {
			l.Claims = []driver.Holder{*it.holder()}
		}
	}
	if err != nil {
		return l, fmt.Errorf("memcachedlock: look at %q: %w", name, err)
	}
	return l, nil
}

// Break implements driver.Inspector. A mark is written into the item, for the rest of its time, and its owner hears of it by its next
// renewal; now deletes it.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if err := d.breakItem(ctx, d.Key(name), publicID, fence, now); err != nil {
		return fmt.Errorf("memcachedlock: break %q: %w", name, err)
	}
	return nil
}

func (d *Driver) breakItem(ctx context.Context, key, publicID string, fence uint64, now bool) error {
	if err := memcache.CheckKey(key); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrRefused, err)
	}
	for range rounds {
		it, err := d.look(ctx, key)
		if err != nil {
			return err
		}
		if it == nil || it.holder().PublicID != publicID || it.Fence != fence {
			return fmt.Errorf("%w: no claim %s with token %d stands there", driver.ErrRefused, publicID, fence)
		}
		if it.foreign && !now {
			return fmt.Errorf("%w: it is another program's, which reads no marks: it can only be broken now", driver.ErrRefused)
		}
		request := memcache.Delete(key, it.CAS)
		if !now {
			it.Broken = true
			request = memcache.Swap(key, it.encode(), max(it.Left, 1), it.CAS) // 0 would be for ever
		}
		replies, err := d.server(key).Do(sessions.Within(ctx, d.options.Timeout), request)
		if err == nil {
			err = replies[0].Err
		}
		if err != nil || replies[0].Status == memcache.Done {
			return err
		}
	}
	return errRestless // it is renewed each time
}

// Watch implements driver.Watcher: it looks.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, latest, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}

var _ interface {
	driver.Driver
	driver.Keyer
	driver.Inspector
	driver.Watcher
} = (*Driver)(nil)
