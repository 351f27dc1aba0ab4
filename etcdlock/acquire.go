package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// Acquire implements driver.Session.
func (s *session) Acquire(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, fmt.Errorf("etcdlock: %w: %w", driver.ErrNotSent, err)
	}
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	return s.answer(c, s.fly(ctx, c, func(ctx context.Context) error {
		_, err := s.enter(ctx, nil, c)
		return err
	}))
}

// answer is the claim's state, unless err says that nothing is known.
func (s *session) answer(c *claim, err error) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lost || s.closed:
		return driver.Grant{}, driver.ErrSessionLost
	case c.state == gone:
		return driver.Grant{}, driver.ErrGone
	case c.state == broken:
		return driver.Grant{}, driver.ErrBroken
	case err != nil:
		if c.state == out && !c.late && certain(err) && c.Landing() == nil {
			s.forget(c)
		}
		return driver.Grant{}, err
	case c.state == out:
		s.forget(c)
	}
	return c.grant, nil
}

// certain reports whether nothing was changed.
func certain(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrSessionLost)
}

// enter has c join its line, or finds it there, in one step in which old leaves, if there is one. It reports whether old was held. Beside
// it the session is renewed, unless that was just done.
func (s *session) enter(ctx context.Context, old, c *claim) (was bool, err error) {
	s.mu.Lock()
	if c.Leaving || s.lost || s.closed {
		s.mu.Unlock()
		return false, fmt.Errorf("etcdlock: %w: the claim is being released", driver.ErrNotSent)
	}
	s.place(c)
	known := c.create != 0
	stale := time.Since(s.renewed) > s.fresh()
	s.mu.Unlock()
	renewed := make(chan error, 1)
	if stale {
		go func() { renewed <- s.keepAlive(ctx) }()
	} else {
		renewed <- nil
	}
	var l line
	if known {
		l, err = s.look(ctx, c)
	} else {
		l, was, err = s.join(ctx, old, c)
	}
	if failure := <-renewed; err == nil {
		err = failure
	}
	if err != nil {
		if err = s.failed(err); errors.Is(err, driver.ErrSessionLost) {
			return was, err
		}
		return was, fmt.Errorf("etcdlock: %w", err)
	}
	s.mu.Lock()
	asks := c.state <= waiting && len(l.entries) > 0
	c.deep = l.partial
	s.mu.Unlock()
	if asks { // who is in the way; mostly known
		h := l.holder(0, s.d.owner(ctx, l.entries[0].lease))
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.state <= waiting {
			c.grant.Holder = &h
		}
	}
	return was, nil
}

// front is how many claims of a line are read where one that excludes all others joins it, and how many processes hear of each that leaves.
const front = 32

// reads are the operations that show how c stands: its own key, and the claims before it. One that shares may have any number of them.
func (s *session) reads(c *claim) []clientv3.Op {
	opts := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)}
	if c.Kind.Exclusive() {
		opts = append(opts, clientv3.WithLimit(front))
	}
	return []clientv3.Op{clientv3.OpGet(c.key), clientv3.OpGet(s.d.options.line(c.Name), opts...)}
}

// read takes the answers to reads. What is not of the front of the line has own alone.
func (s *session) read(ctx context.Context, c *claim, own []*mvccpb.KeyValue, all *etcdserverpb.RangeResponse) (line, error) {
	l, err := s.d.readLine(c.Name, all.Kvs)
	switch {
	case err != nil || !all.More:
		return l, err
	case len(l.entries) == 0: // all that was read belongs to names below this one
		return s.d.read(ctx, c.Name)
	}
	if len(own) > 0 && l.find(c.key) < 0 {
		l, err = s.d.readLine(c.Name, append(all.Kvs, own[0]))
	}
	l.partial = true
	return l, err
}

// look finds c, which is in line as far as this process was told. It can not put it there.
func (s *session) look(ctx context.Context, c *claim) (line, error) {
	r, err := s.d.client.Txn(ctx).Then(append(s.reads(c), clientv3.OpGet(s.key()), clientv3.OpGet(s.mark(c)))...).Commit()
	if err != nil {
		return line{}, err
	}
	if err := s.saw(r.Responses[2]); err != nil {
		return line{}, err
	}
	l, err := s.read(ctx, c, r.Responses[0].GetResponseRange().Kvs, r.Responses[1].GetResponseRange())
	if err != nil {
		return l, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.missed = false
	there, err := c.stands(&l)
	switch {
	case there:
	case len(r.Responses[3].GetResponseRange().Kvs) > 0:
		c.end(broken)
	default:
		c.end(gone)
	}
	return l, err
}

// join puts c at the end of its line, or finds it there. Where it may not wait, the keys of the line must be as they were seen: at first,
// that there are none.
//
// The session's key has the version that the session knows, else a request that was given up, and overtaken by the Release of its claim,
// would put the claim into the line for nobody: see overtake.
func (s *session) join(ctx context.Context, old, c *claim) (l line, was bool, err error) {
	prefix := s.d.options.line(c.Name)
	var leaves []clientv3.Op
	if old != nil {
		leaves = []clientv3.Op{clientv3.OpDelete(old.key, clientv3.WithPrevKV())}
	}
	then := append(leaves, clientv3.OpPut(c.key, c.value, clientv3.WithLease(s.lease)), s.reads(c)[1])
	for seen := int64(0); ; {
		s.mu.Lock()
		epoch := s.epoch
		s.mu.Unlock()
		conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(c.key), "=", 0), clientv3.Compare(clientv3.Version(s.key()), "=", epoch)}
		if !c.Queue && old == nil {
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(prefix).WithPrefix(), "<", seen+1))
		}
		r, err := s.d.client.Txn(ctx).If(conditions...).Then(then...).Else(append(s.reads(c), clientv3.OpGet(s.key()))...).Commit()
		if err != nil {
			s.mu.Lock()
			if !certain(classify(err)) {
				c.late = true
				if old != nil {
					old.late, old.Unsure = true, true
				}
			}
			s.mu.Unlock()
			return l, false, err
		}
		if r.Succeeded {
			front := r.Responses[len(leaves)+1].GetResponseRange()
			if len(front.Kvs) == 1 && string(front.Kvs[0].Key) == c.key { // as where a lock is free: nothing has to be read
				l = line{name: c.Name, entries: []entry{c.entry(r.Header.Revision)}}
			} else {
				own := &mvccpb.KeyValue{Key: []byte(c.key), Value: []byte(c.value), Lease: int64(s.lease), CreateRevision: r.Header.Revision}
				l, err = s.read(ctx, c, []*mvccpb.KeyValue{own}, front)
			}
			if old != nil {
				was = s.wasHeld(old, r.Responses[0].GetResponseDeleteRange().PrevKvs, &l)
			}
			return l, was, s.joined(ctx, c, &l, r.Header.Revision, err)
		}
		if err := s.saw(r.Responses[2]); err != nil {
			return l, false, err
		}
		if l, err = s.read(ctx, c, r.Responses[0].GetResponseRange().Kvs, r.Responses[1].GetResponseRange()); err != nil {
			return l, false, err
		}
		if own := l.find(c.key); own >= 0 {
			if l.entries[own].ID == driver.PublicID(c.ID) && old == nil {
				return l, false, s.joined(ctx, c, &l, l.entries[own].create, nil)
			}
			// What stands there was given up, and its Release did not arrive.
			if _, err := s.d.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(c.key), "=", l.entries[own].create)).Then(clientv3.OpDelete(c.key)).Commit(); err != nil {
				return l, false, err
			}
			continue
		}
		if !c.Queue && old == nil {
			if err := l.admits(c.Claim, ""); err != nil || !l.fits(c.Claim) {
				return l, false, err
			}
			seen = r.Header.Revision
		}
	}
}

// joined takes in that c was put in line. One that cannot stand there, or may not wait, is taken out again.
func (s *session) joined(ctx context.Context, c *claim, l *line, revision int64, err error) error {
	s.mu.Lock()
	c.create = revision
	if err == nil {
		err = l.admits(c.Claim, c.key)
	}
	if err == nil {
		_, err = c.stands(l)
	}
	misfit := err != nil || c.state == waiting && !c.Queue
	s.mu.Unlock()
	if !misfit {
		return err
	}
	_, failed := s.d.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(c.key), "=", revision)).Then(clientv3.OpDelete(c.key)).Commit()
	if failed != nil {
		return failed // it stands there, and is to be released
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.create, c.state = 0, out
	return err
}

// Requeue implements driver.Requeuer: one transaction does both, since two claims of a session have two keys.
func (s *session) Requeue(ctx context.Context, oldClaim, nextClaim driver.Claim) (driver.Grant, bool, error) {
	next, err := s.claim(nextClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	old, err := s.releasing(oldClaim)
	if err != nil {
		return driver.Grant{}, false, err
	}
	was := false
	err = s.fly(ctx, old, func(ctx context.Context) error {
		return s.fly(ctx, next, func(ctx context.Context) (err error) {
			s.mu.Lock()
			s.place(old)
			s.mu.Unlock()
			if was, err = s.enter(ctx, old, next); err == nil {
				s.left(old, was)
			}
			return err
		})
	})
	if err != nil {
		return driver.Grant{}, false, err
	}
	g, err := s.answer(next, nil)
	return g, was, err
}
