package etcdlock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// linger is how long a view stays when nobody waits any more.
const linger = 5 * time.Second

// view is the line of one name as the events of a watch make it, for all claims of this process that wait there: a claim learns that it
// holds by the deletion of the one before it, and nothing is read for that. The watch begins at the present, and what stands there is read
// when it has: a watch that begins at a revision that has passed is told only after 100 ms.
//
// Its keys are exactly those of one revision after the other, a claim's own among them: one whose lease has run out while it waited is seen
// to have gone, and cannot be taken for the next.
type view struct {
	d     *Driver
	name  string
	ready chan struct{} // closed when it has the line, or never will: then over is closed, too
	over  chan struct{} // closed when it hears no more
	err   error         // why, before ready

	// Guarded by the driver's mutex, and by claims' after that.
	begun    int64 // the revision that was read
	revision int64 // that of the last event
	kvs      map[string]*mvccpb.KeyValue
	waiting  map[*claim]bool
	idle     time.Time // since when nobody waits
}

// view returns the view of a name, with c among those who wait there, and makes it if it is missing.
func (d *Driver) view(c *claim) (*view, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return nil, errClosed
	}
	v := d.views[c.Name]
	if v == nil {
		v = &view{
			d: d, name: c.Name, ready: make(chan struct{}), over: make(chan struct{}),
			kvs: map[string]*mvccpb.KeyValue{}, waiting: map[*claim]bool{},
		}
		d.views[c.Name] = v
		d.wg.Go(v.follow)
	}
	v.waiting[c] = true
	return v, nil
}

// leave says that c does not wait any more.
func (v *view) leave(c *claim) {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	delete(v.waiting, c)
	v.idle = time.Now()
}

// follow hears until nobody has waited for a while, or the watch ends.
func (v *view) follow() {
	ctx, cancel := context.WithCancel(v.d.ctx)
	defer cancel()
	v.err = v.hear(ctx, cancel)
	v.d.mu.Lock()
	if v.d.views[v.name] == v {
		delete(v.d.views, v.name)
	}
	v.d.mu.Unlock()
	select {
	case <-v.ready:
	default:
		close(v.ready)
	}
	close(v.over)
}

// hear takes in events.
func (v *view) hear(ctx context.Context, cancel context.CancelFunc) error {
	prefix := v.d.options.line(v.name)
	slow := time.AfterFunc(v.d.options.Timeout, cancel)
	events := v.d.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	first, ok := <-events
	if err := first.Err(); err != nil {
		return fmt.Errorf("%w: no watch: %w", driver.ErrNotSent, classify(err))
	}
	if !slow.Stop() || !ok {
		return fmt.Errorf("%w: no watch in %v", driver.ErrNotSent, v.d.options.Timeout)
	}
	reading, stop := v.d.within(ctx, v.d.options.Timeout)
	r, err := v.d.client.Get(reading, prefix, clientv3.WithPrefix())
	stop()
	if err != nil {
		return fmt.Errorf("%w: %w", driver.ErrNotSent, classify(err))
	}
	v.d.mu.Lock()
	v.begun, v.revision, v.idle = r.Header.Revision, r.Header.Revision, time.Now()
	for _, kv := range r.Kvs {
		v.kvs[string(kv.Key)] = kv
	}
	v.d.mu.Unlock()
	close(v.ready)
	v.settle()
	look := time.NewTicker(linger)
	defer look.Stop()
	for {
		select {
		case r, ok := <-events:
			if !ok || r.Err() != nil {
				return r.Err()
			}
			v.take(r.Events)
			v.settle()
		case <-look.C:
			v.d.mu.Lock()
			done := len(v.waiting) == 0 && time.Since(v.idle) >= linger
			if done {
				delete(v.d.views, v.name)
			}
			v.d.mu.Unlock()
			if done {
				return nil
			}
		}
	}
}

// take applies events that are later than what was read.
func (v *view) take(events []*clientv3.Event) {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	for _, e := range events {
		if e.Kv.ModRevision <= v.begun {
			continue
		}
		if e.Type == clientv3.EventTypeDelete {
			delete(v.kvs, string(e.Kv.Key))
		} else {
			v.kvs[string(e.Kv.Key)] = e.Kv
		}
		v.revision = e.Kv.ModRevision
	}
}

// settle has every claim that waits know how it stands.
func (v *view) settle() {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	if len(v.waiting) == 0 {
		return
	}
	l, err := v.d.readLine(v.name, slices.Collect(maps.Values(v.kvs)))
	if err != nil {
		return // who asks is told
	}
	for c := range v.waiting {
		c.s.mu.Lock()
		if c.state == waiting && !c.Leaving && c.create <= v.revision {
			if there, _ := c.stands(&l); !there { // an error is of a token, and Acquire has had it
				c.missed = true
				c.change.Give()
			}
		}
		c.s.mu.Unlock()
	}
}
