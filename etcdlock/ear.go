package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// linger is how long a view stays when nobody waits any more, at least.
const linger = 5 * time.Second

// view is the line of one name as the events of a watch make it, for all claims of this process that wait there: a claim learns that it
// holds by the deletion of the one before it, and nothing is read for that. The watch begins at the present, and what stands there is read
// when it has: a watch that begins at a revision that has passed is told only after 100 ms.
//
// Its keys are exactly those of one revision after the other, a claim's own among them: one whose lease has run out while it waited is seen
// to have gone, and cannot be taken for the next.
type view struct {
	name  string
	ready chan struct{} // closed when it has the line
	over  chan struct{} // closed when it hears no more, or never has

	// Guarded by the driver's mutex.
	line     line
	revision int64 // that the line is of
	waiting  map[*rowline.Claim]bool
	idle     bool // nobody waited when that was last looked at
}

// ears are the views of a driver. It implements rowline.Ears.
type ears struct{ *Driver }

var errNoWatch = fmt.Errorf("etcdlock: %w: nothing can be watched", driver.ErrNotSent)

// Hear implements rowline.Ears: Listen says how the claim stands by then.
func (e ears) Hear(c *rowline.Claim) rowline.Ear {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.places[c.ID]; p != nil && p.ear != nil {
		p.deaf() // it is about to look, and then hears of whoever is before it now
		p.ear = nil
	}
	return nil
}

// Unhear implements rowline.Ears.
func (e ears) Unhear(c *rowline.Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := e.views[c.Name]; v != nil {
		delete(v.waiting, c)
	}
}

// Listen implements rowline.Ears. A claim that has a place has nothing to ask: its view shows it, or will.
func (e ears) Listen(ctx context.Context, c *rowline.Claim) (rowline.Ear, error) {
	ctx, cancel := e.limit(ctx)
	defer cancel()
	e.mu.Lock()
	p := e.places[c.ID]
	deep := p != nil && p.deep
	e.mu.Unlock()
	if deep {
		if ear, err := e.behind(ctx, p, c); ear != nil || err != nil {
			return ear, err
		}
	}
	e.mu.Lock()
	v, known := e.views[c.Name]
	if !known {
		v = &view{name: c.Name, ready: make(chan struct{}), over: make(chan struct{}), waiting: map[*rowline.Claim]bool{}}
		e.views[c.Name] = v
		e.wg.Go(func() { e.follow(v) })
	}
	v.waiting[c] = true
	e.mu.Unlock()
	select {
	case <-v.ready:
	case <-v.over:
		return nil, errNoWatch
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p != nil {
		c.Heard(v.over)
		e.settle(v, c)
	}
	return v.over, nil
}

// behind is the ear of a claim that has many before it: it hears of the last of those alone, as package concurrency does, so that a release
// wakes few, however many wait. It is nil where there is none.
func (e ears) behind(ctx context.Context, p *place, c *rowline.Claim) (rowline.Ear, error) {
	e.mu.Lock()
	ear, create, prefix := p.ear, p.create, e.options.line(p.Name)
	e.mu.Unlock()
	if ear != nil {
		return ear, nil
	}
	before := append(clientv3.WithLastCreate(), clientv3.WithPrefix(), clientv3.WithMaxCreateRev(create-1), clientv3.WithKeysOnly())
	r, err := e.get(ctx, prefix, before...)
	if err != nil || len(r.Kvs) == 0 || !isSlot(string(r.Kvs[0].Key[len(prefix):]), r.Kvs[0].Lease) {
		return nil, err
	}
	hearing, deaf := context.WithCancel(e.ctx)
	// It may be told late, if the revision has passed, but everything.
	events := e.client.Watch(hearing, string(r.Kvs[0].Key), clientv3.WithRev(r.Header.Revision+1), clientv3.WithFilterPut())
	ear = make(chan struct{})
	e.mu.Lock()
	p.ear, p.deaf = ear, deaf
	e.mu.Unlock()
	c.Heard(ear)
	e.wg.Go(func() {
		defer deaf()
		if r, ok := <-events; !ok || r.Err() != nil {
			pause(hearing) // then it looks
		}
		if hearing.Err() == nil {
			c.Again()
			close(ear)
		}
	})
	return ear, nil
}

// follow hears until nobody has waited for a while, or the watch ends.
func (e ears) follow(v *view) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	err := e.hear(ctx, v)
	e.mu.Lock()
	if e.views[v.name] == v {
		delete(e.views, v.name)
	}
	e.mu.Unlock()
	if err != nil {
		go e.options.Logger.Debug("etcdlock: a watch has ended", "name", v.name, "error", err)
		pause(ctx)
	}
	close(v.over)
}

// hear takes in what is there, and then events.
func (e ears) hear(ctx context.Context, v *view) error {
	prefix := e.options.line(v.name)
	events := e.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if first, ok := <-events; !ok || first.Err() != nil {
		return errors.Join(errNoWatch, first.Err())
	}
	reading, cancel := e.limit(ctx)
	defer cancel()
	r, err := e.get(reading, prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	l, err := e.readLine(v.name, r.Kvs)
	if err != nil {
		return err
	}
	e.mu.Lock()
	v.line, v.revision = l, r.Header.Revision
	e.mu.Unlock()
	close(v.ready)
	look := time.NewTicker(linger)
	defer look.Stop()
	for {
		select {
		case r, ok := <-events:
			if !ok {
				return errNoWatch
			}
			if err := errors.Join(r.Err(), e.take(v, r.Events)); err != nil {
				return err
			}
			e.settle(v, nil)
		case <-look.C:
			e.mu.Lock()
			was := v.idle
			v.idle = len(v.waiting) == 0
			if was && v.idle {
				delete(e.views, v.name)
				e.mu.Unlock()
				return nil
			}
			e.mu.Unlock()
		}
	}
}

// take applies events that are later than what is known: all of one revision come together.
func (e ears) take(v *view, events []*clientv3.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
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
		n, err := e.readLine(v.name, []*mvccpb.KeyValue{event.Kv})
		if err != nil {
			return err
		}
		v.line.entries = append(v.line.entries, n.entries...)
		v.line.sort()
	}
	return nil
}

// settle has the claims that wait know how they stand, or one of them.
func (e ears) settle(v *view, one *rowline.Claim) {
	tell := map[*rowline.Claim]rowline.Answer{}
	e.mu.Lock()
	for c := range v.waiting {
		p := e.places[c.ID]
		if one != nil && c != one || p == nil || p.create == 0 || p.create > v.revision {
			continue
		}
		if a, _ := p.stands(&v.line, p.create); a.State != rowline.Waiting { // an error is of a token, and Acquire has had it
			tell[c] = a
		}
	}
	e.mu.Unlock()
	for c, a := range tell {
		if a.State == rowline.Held {
			c.Granted(a.Fence)
		} else { // broken, or with the session, or just gone
			c.Again()
		}
	}
}
