package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// show returns the line as it is shown to people.
func (d *Driver) show(ctx context.Context, l *line) driver.Line {
	shown := driver.Line{Name: l.name}
	for i, e := range l.entries {
		h := l.holder(i)
		h.Owner = d.store.owners.of(ctx, e.lease)
		shown.Claims = append(shown.Claims, h)
	}
	return shown
}

// Line implements driver.Inspector. The store says when leases end, in whole seconds, and keeps no
// times of what was granted when.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	l, _, err := d.line(ctx, name)
	if err != nil {
		return driver.Line{Name: name}, fmt.Errorf("etcdlock: look at %q: %w", name, err)
	}
	shown := d.show(ctx, &l)
	ends := map[clientv3.LeaseID]time.Time{}
	for i, e := range l.entries {
		if _, known := ends[e.lease]; !known {
			asked := time.Now()
			ends[e.lease] = time.Time{} // where it does not say
			if r, err := d.client.TimeToLive(ctx, e.lease); err == nil && r.TTL >= 0 {
				// It leaves out what is less than one.
				ends[e.lease] = asked.Add(time.Duration(r.TTL+1) * time.Second)
			}
		}
		shown.Claims[i].Until = ends[e.lease]
	}
	return shown, nil
}

// Lines implements driver.Inspector. A store may contain much besides locks: only keys are read, a
// page at a time.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	var names []string
	from := d.options.Namespace + prefix
	end := clientv3.GetPrefixRangeEnd(from)
	from = cmp.Or(from, "\x00") // the first key that there can be
	for more := true; more; {
		r, err := d.page(ctx, from, end)
		if err != nil {
			return nil, fmt.Errorf("etcdlock: list: %w", err)
		}
		for _, kv := range r.Kvs {
			from = string(kv.Key) + "\x00"
			name, slot := cutLast(strings.TrimPrefix(string(kv.Key), d.options.Namespace))
			if isSlot(slot, kv.Lease) && strings.HasPrefix(name, prefix) && checkName(name) == nil {
				names = append(names, name)
			}
		}
		more = r.More
	}
	slices.Sort(names) // the keys of a/b may stand among those of a
	var lines []driver.Line
	for _, name := range slices.Compact(names) {
		l, err := d.Line(ctx, name)
		if err != nil {
			return lines, err
		}
		if len(l.Claims) > 0 {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// pageSize is how many keys are read at once.
const pageSize = 1000

// page reads some keys.
func (d *Driver) page(ctx context.Context, from, end string) (*clientv3.GetResponse, error) {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	return d.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithKeysOnly())
}

// Break implements driver.Inspector. The mark is in the claim's value, where a release or a look at
// the line finds it, and a key of the claim's lease, which the session's renewal lists and its
// watch reports.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	for {
		done, err := d.tryBreak(ctx, name, publicID, fence, now)
		if err != nil {
			return fmt.Errorf("etcdlock: break %q: %w", name, err)
		}
		if done {
			return nil
		}
	}
}

// tryBreak breaks the claim unless the line has changed since it was read: then done is false.
func (d *Driver) tryBreak(ctx context.Context, name, publicID string, fence uint64, now bool) (done bool, err error) {
	l, _, err := d.line(ctx, name)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.ID == publicID })
	if i < 0 {
		return false, fmt.Errorf("%w: no claim %s stands there: it has left", driver.ErrRefused, publicID)
	}
	e, h := l.entries[i], l.holder(i)
	if h.Fence != fence {
		return false, fmt.Errorf("%w: claim %s has the token %d, not %d: it is not the claim you saw", driver.ErrRefused, publicID, h.Fence, fence)
	}
	unchanged := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(e.key), "=", e.mod)}
	do := []clientv3.Op{clientv3.OpDelete(e.key)}
	if !e.foreign {
		do = append(do, clientv3.OpPut(d.options.session(e.lease)+"/"+publicID, "", clientv3.WithLease(e.lease)))
	}
	switch {
	case now:
	case e.foreign:
		return false, fmt.Errorf("%w: claim %s is another program's, which reads no marks", driver.ErrOnlyNow, publicID)
	case h.Held:
		marked := e.value
		marked.Broken = true
		if marked.Kind == driver.Mutex {
			marked.Kind, marked.Weight, marked.Limit = 0, 0, 0
		}
		do[0] = clientv3.OpPut(e.key, encode(marked), clientv3.WithLease(e.lease))
	default: // it waits, as long as those before it are there
		for _, ahead := range l.entries[:min(i, maxOps)] {
			unchanged = append(unchanged, clientv3.Compare(clientv3.CreateRevision(ahead.key), "=", ahead.create))
		}
	}
	r, err := d.client.Txn(ctx).If(unchanged...).Then(do...).Commit()
	if errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) && do[0].IsDelete() { // there is no room for a mark, and its owner finds it gone
		r, err = d.client.Txn(ctx).If(unchanged...).Then(do[0]).Commit()
	}
	if err = classify(err); errors.Is(err, driver.ErrSessionLost) {
		return false, nil // its lease has just run out, and the claim goes with it
	}
	return err == nil && r.Succeeded, err
}

// Watch implements driver.Watcher: it reads the line whenever a key of it has changed.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return func(yield func(driver.Line, error) bool) {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		events := d.client.Watch(ctx, d.options.prefix(name), clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		for r := range events {
			if err := r.Err(); err != nil {
				yield(driver.Line{}, fmt.Errorf("etcdlock: watch %q: %w", name, classify(err)))
				return
			}
			l, _, err := d.line(ctx, name)
			if err != nil {
				yield(driver.Line{}, fmt.Errorf("etcdlock: watch %q: %w", name, err))
				return
			}
			if !yield(d.show(ctx, &l), nil) {
				return
			}
		}
		err := ctx.Err()
		if err == nil {
			err = errClosed // with the client
		}
		yield(driver.Line{}, err)
	}
}
