package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// linger is how long a view stays when nobody waits any more, at least.
const linger = 5 * time.Second

// view is the line of one name as the events of a watch show it, for all claims of this process
// that wait there. A claim learns that it is held by the deletion of the one before it, and reads
// nothing for that. The watch begins at the present, and the line is read when it has begun: events
// of a watch that begins at a past revision are sent only every 100 ms.
//
// The view has exactly the keys of one revision after the other, a waiting claim's own among them.
// So a claim whose lease runs out while it waits is seen to be gone, and is never granted.
type view struct {
	name  string
	ready chan struct{} // closed when the line was read
	over  chan struct{} // closed when the watch has ended, or has failed to begin

	// Guarded by the mutex of state.
	line     line
	revision int64 // that the line is of
	waiting  map[*rowline.Claim]bool
	idle     bool // nobody waited at the last look
}

// views are those of a driver, by name; the mutex of state guards the map. They implement
// rowline.Notifier.
type views struct {
	*server
	*state
	all map[string]*view
}

var errNoWatch = fmt.Errorf("etcdlock: %w: nothing can be watched", driver.ErrNotSent)

// Subscribe implements rowline.Notifier. It subscribes to nothing: Listen tells how the claim
// stands by then.
func (vs *views) Subscribe(c *rowline.Claim) rowline.Subscription {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if mine := vs.claims[c.ID]; mine != nil {
		mine.stopWatch() // another claim may be before it by the next Listen
	}
	return nil
}

// Unsubscribe implements rowline.Notifier.
func (vs *views) Unsubscribe(c *rowline.Claim) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v := vs.all[c.Name]; v != nil {
		delete(v.waiting, c)
	}
}

// Listen implements rowline.Notifier. A claim that is in line need not ask: its view shows how it
// stands, or will.
func (vs *views) Listen(ctx context.Context, c *rowline.Claim) (rowline.Subscription, error) {
	ctx, cancel := vs.limit(ctx)
	defer cancel()
	vs.mu.Lock()
	mine := vs.claims[c.ID]
	deep := mine != nil && mine.deep
	vs.mu.Unlock()
	if deep {
		if told, err := vs.watchBefore(ctx, mine, c); told != nil || err != nil {
			return told, err
		}
	}
	v := vs.wait(c)
	select {
	case <-v.ready:
	case <-v.over:
		return nil, errNoWatch
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if mine != nil {
		c.Current(v.over)
		vs.notify(v, c)
	}
	return v.over, nil
}

// wait adds a claim to those that wait in the view of its name, which it makes if there is none.
func (vs *views) wait(c *rowline.Claim) *view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v, known := vs.all[c.Name]
	if !known {
		v = &view{name: c.Name, ready: make(chan struct{}), over: make(chan struct{}), waiting: map[*rowline.Claim]bool{}}
		vs.all[c.Name] = v
		vs.wg.Go(func() { vs.follow(v) })
	}
	v.waiting[c] = true
	return v
}

// watchBefore returns a watch of the last claim before this one alone, as package concurrency has
// it: where many wait, a release then wakes few. It is nil if there is no such claim.
func (vs *views) watchBefore(ctx context.Context, mine *claim, c *rowline.Claim) (rowline.Subscription, error) {
	vs.mu.Lock()
	before, create, prefix := mine.before, mine.create, vs.options.prefix(mine.Name)
	vs.mu.Unlock()
	if before != nil {
		return before, nil
	}
	last := append(clientv3.WithLastCreate(), clientv3.WithPrefix(), clientv3.WithMaxCreateRev(create-1), clientv3.WithKeysOnly())
	r, err := vs.get(ctx, prefix, last...)
	if err != nil || len(r.Kvs) == 0 || !isSlot(string(r.Kvs[0].Key[len(prefix):]), r.Kvs[0].Lease) {
		return nil, err
	}
	watching, cancel := context.WithCancel(vs.ctx)
	// The events may come late, if the revision has passed, but none is missed.
	events := vs.client.Watch(watching, string(r.Kvs[0].Key), clientv3.WithRev(r.Header.Revision+1), clientv3.WithFilterPut())
	told := make(chan struct{})
	vs.mu.Lock()
	mine.before, mine.unwatch = told, cancel
	vs.mu.Unlock()
	c.Current(told)
	vs.wg.Go(func() {
		defer cancel()
		if r, ok := <-events; !ok || r.Err() != nil {
			pause(watching) // and then the claim asks
		}
		if watching.Err() == nil {
			c.Again()
			close(told)
		}
	})
	return told, nil
}

// follow keeps a view up to date until nobody has waited for a while, or its watch ends.
func (vs *views) follow(v *view) {
	ctx, cancel := context.WithCancel(vs.ctx)
	defer cancel()
	err := vs.watch(ctx, v)
	vs.mu.Lock()
	if vs.all[v.name] == v {
		delete(vs.all, v.name)
	}
	vs.mu.Unlock()
	if err != nil {
		go vs.options.Logger.Debug("etcdlock: a watch has ended", "name", v.name, "error", err)
		pause(ctx)
	}
	close(v.over)
}

// watch begins a watch, reads the line, and then applies events to it.
func (vs *views) watch(ctx context.Context, v *view) error {
	events := vs.client.Watch(ctx, vs.options.prefix(v.name), clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if first, ok := <-events; !ok || first.Err() != nil {
		return errors.Join(errNoWatch, first.Err())
	}
	reading, cancel := vs.limit(ctx)
	defer cancel()
	l, revision, err := vs.line(reading, v.name)
	if err != nil {
		return err
	}
	vs.mu.Lock()
	v.line, v.revision = l, revision
	vs.mu.Unlock()
	close(v.ready)
	look := time.NewTicker(linger)
	defer look.Stop()
	for {
		select {
		case r, ok := <-events:
			if !ok {
				return errNoWatch
			}
			if err := errors.Join(r.Err(), vs.apply(v, r.Events)); err != nil {
				return err
			}
			vs.notify(v, nil)
		case <-look.C:
			if vs.unused(v) {
				return nil
			}
		}
	}
}

// unused reports whether nobody waits, as at the last look. Then it takes the view out of the map,
// so that nobody begins to wait there.
func (vs *views) unused(v *view) bool {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	was := v.idle
	v.idle = len(v.waiting) == 0
	if !was || !v.idle {
		return false
	}
	delete(vs.all, v.name)
	return true
}

// apply applies events that are later than the view: all of one revision come together.
func (vs *views) apply(v *view, events []*clientv3.Event) error {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	known := v.revision
	for _, event := range events {
		if event.Kv.ModRevision <= known {
			continue
		}
		v.revision = event.Kv.ModRevision
		if i := v.line.find(string(event.Kv.Key)); i >= 0 {
			v.line.entries = slices.Delete(v.line.entries, i, i+1)
		}
		if event.Type == clientv3.EventTypeDelete {
			continue
		}
		n, err := parseLine(v.name, vs.options.prefix(v.name), []*mvccpb.KeyValue{event.Kv})
		if err != nil {
			return err
		}
		v.line.entries = append(v.line.entries, n.entries...)
		v.line.sort()
	}
	return nil
}

// notify tells the claims that wait in a view how they stand, or one of them.
func (vs *views) notify(v *view, one *rowline.Claim) {
	tell := map[*rowline.Claim]rowline.Answer{}
	vs.mu.Lock()
	for c := range v.waiting {
		mine := vs.claims[c.ID]
		if one != nil && c != one || mine == nil || mine.create == 0 || mine.create > v.revision {
			continue
		}
		// An error is of a token, and Acquire has had it.
		if a, _ := mine.update(&v.line, mine.create); a.State != rowline.Waiting {
			tell[c] = a
		}
	}
	vs.mu.Unlock()
	for c, a := range tell {
		if a.State == rowline.Held {
			c.Granted(a.Fence)
		} else { // broken, or with the session, or just gone
			c.Again()
		}
	}
}

// first returns the first claim of a line that is watched. The mutex is held.
func (vs *views) first(name string) (e entry, known bool) {
	if v := vs.all[name]; v != nil && len(v.line.entries) > 0 {
		return v.line.entries[0], true
	}
	return e, false
}
