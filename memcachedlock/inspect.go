package memcachedlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
)

// Lines implements driver.Inspector. A server lists all its keys, which takes long where they are
// many.
func (d *Driver) Lines(ctx context.Context, prefix string) (lines []driver.Line, err error) {
	for _, s := range d.servers {
		keys, why := s.Keys(ctx, d.options.Prefix)
		if why != nil {
			err = errors.Join(err, fmt.Errorf("memcachedlock: list: %s: %w", s.Addr, why))
		}
		for _, key := range keys {
			it, why := look(ctx, s, key)
			if why != nil {
				err = errors.Join(err, fmt.Errorf("memcachedlock: list: %q: %w", key, why))
				if errors.Is(why, driver.ErrRefused) {
					continue
				}
				break // the server does not answer, and has had its time
			}
			if it == nil || it.foreign && d.options.Prefix == "" {
				continue // gone by now, or anything
			}
			name := it.Name
			if it.foreign {
				name = strings.TrimPrefix(key, d.options.Prefix)
			}
			if strings.HasPrefix(name, prefix) {
				lines = append(lines, driver.Line{Name: name, Claims: []driver.Holder{*it.show()}})
			}
		}
	}
	slices.SortFunc(lines, func(a, b driver.Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines, err
}

// Line implements driver.Inspector. Claims that wait are not stored.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	l, key := driver.Line{Name: name}, d.options.key(name)
	it, err := look(ctx, d.server(key), key)
	if err != nil {
		return l, fmt.Errorf("memcachedlock: look at %q: %w", name, err)
	}
	if it != nil {
		l.Claims = []driver.Holder{*it.show()}
	}
	return l, nil
}

// Break implements driver.Inspector. A mark is written into the item, for the rest of its time, and
// its owner finds it by its next renewal; if now is true the item is deleted.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	key := d.options.key(name)
	for range rounds {
		it, err := look(ctx, d.server(key), key)
		switch {
		case err != nil:
			return fmt.Errorf("memcachedlock: break %q: %w", name, err)
		case it == nil || it.show().PublicID != publicID || it.Fence != fence:
			return fmt.Errorf("memcachedlock: break %q: %w: no claim %s with token %d stands there", name, driver.ErrRefused, publicID, fence)
		case it.foreign && !now:
			return fmt.Errorf("memcachedlock: break %q: %w: it is another program's, which reads no marks", name, driver.ErrOnlyNow)
		}
		request := memcache.Delete(key, it.Version)
		if !now {
			it.Broken = true
			left := max(it.Left, 1) // 0 is for ever
			if it.Left < 0 {
				left = 0
			}
			request = memcache.Swap(key, it.encode(), left, it.Version)
		}
		r, err := d.server(key).Do(ctx, request)
		if err != nil {
			return fmt.Errorf("memcachedlock: break %q: %w", name, err)
		}
		if r.Status == memcache.Done {
			return nil
		}
	}
	return fmt.Errorf("memcachedlock: break %q: %w", name, errRestless) // it is renewed each time
}

// Watch implements driver.Watcher: it polls.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, latest, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
