package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// Release implements driver.Session.
func (s *session) Release(ctx context.Context, dc driver.Claim) (bool, error) {
	c, err := s.releasing(dc)
	if err != nil {
		return false, err
	}
	return s.release(ctx, c)
}

// releasing returns the claim with no request but its Release from now on.
func (s *session) releasing(dc driver.Claim) (*claim, error) {
	if err := check(dc); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.lost {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Leaving(dc.ID, false, func() *claim { return s.newClaim(dc) }), nil
}

// release takes the claim out, once.
func (s *session) release(ctx context.Context, c *claim) (bool, error) {
	return c.Release(ctx, &s.mu, true, s.timeout, s.limited(ctx, func(ctx context.Context) error {
		was, err := s.leave(ctx, c)
		if err != nil {
			if err = s.failed(err); errors.Is(err, driver.ErrSessionLost) {
				return err
			}
			return fmt.Errorf("etcdlock: release %q: %w", c.Name, err)
		}
		s.left(c, was)
		return nil
	}))
}

// left notes that the claim has left.
func (s *session) left(c *claim, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Left, c.Was = true, was
	c.end(gone)
	s.forget(c)
}

// leave deletes the key of c.
func (s *session) leave(ctx context.Context, c *claim) (was bool, err error) {
	s.mu.Lock()
	key, create, late, st := c.key, c.create, c.late, c.state
	s.mu.Unlock()
	defer func() {
		if err != nil {
			s.mu.Lock()
			c.retire = true
			s.mu.Unlock()
		}
	}()
	switch {
	case key == "":
		return s.leaveUnknown(ctx, c)
	case late:
		return s.overtake(ctx, c)
	case create == 0:
		return false, nil // it was never put there
	}
	if st == held {
		r, err := s.d.client.Delete(ctx, key, clientv3.WithPrevKV())
		if err != nil {
			return false, err
		}
		return s.wasHeld(c, r.PrevKvs, nil), nil
	}
	then := s.leaving(c)
	if st == broken {
		then = append(then, clientv3.OpDelete(s.mark(c)))
	}
	r, err := s.d.client.Txn(ctx).Then(then...).Commit() // it may be held all the same
	if err != nil {
		return false, err
	}
	return s.was(c, r.Responses), nil
}

// leaving are the operations that take c out of its line, and show the line without it.
func (s *session) leaving(c *claim) []clientv3.Op {
	return []clientv3.Op{clientv3.OpDelete(c.key, clientv3.WithPrevKV()), clientv3.OpGet(s.d.options.line(c.Name), clientv3.WithPrefix())}
}

// was reports whether c was held, by the answers to leaving.
func (s *session) was(c *claim, answers []*etcdserverpb.ResponseOp) bool {
	l, err := s.d.readLine(c.Name, answers[1].GetResponseRange().Kvs)
	return err == nil && s.wasHeld(c, answers[0].GetResponseDeleteRange().PrevKvs, &l)
}

// wasHeld reports whether a claim was held until its key was deleted, by the line without it where that is not known.
func (s *session) wasHeld(c *claim, deleted []*mvccpb.KeyValue, l *line) bool {
	if len(deleted) == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(deleted[0].Value) != c.value { // marked as broken, or another's
		return false
	}
	if c.state == held || l == nil {
		return c.state == held
	}
	e := c.entry(deleted[0].CreateRevision)
	with := line{entries: append(slices.Clone(l.entries), e)}
	with.sort()
	return with.holds(with.find(c.key))
}

// overtake deletes the key of a claim that a request may still put there which had no answer. It writes the session's key in the same step:
// whatever was sent before finds another version of it then, and changes nothing.
func (s *session) overtake(ctx context.Context, c *claim) (was bool, err error) {
	remove := s.leaving(c)
	for {
		s.mu.Lock()
		epoch := s.epoch
		s.mu.Unlock()
		r, err := s.d.client.Txn(ctx).If(clientv3.Compare(clientv3.Version(s.key()), "=", epoch)).
			Then(append(remove, clientv3.OpPut(s.key(), s.person, clientv3.WithLease(s.lease)))...).Else(clientv3.OpGet(s.key())).Commit()
		if errors.Is(classify(err), driver.ErrUnable) { // it writes nothing, and so does whatever is late
			r, err = s.d.client.Txn(ctx).Then(remove...).Commit()
		}
		if err != nil {
			return false, err
		}
		if r.Succeeded {
			return s.was(c, r.Responses), nil
		}
		if err := s.saw(r.Responses[0]); err != nil {
			return false, err
		}
	}
}

// leaveUnknown takes out a claim that another session has put there, or nobody.
func (s *session) leaveUnknown(ctx context.Context, c *claim) (bool, error) {
	for {
		l, err := s.d.read(ctx, c.Name)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(l.entries, func(e entry) bool { return !e.foreign && e.ID == driver.PublicID(c.ID) })
		if i < 0 {
			return false, nil
		}
		e := l.entries[i]
		r, err := s.d.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(e.key), "=", e.mod)).Then(clientv3.OpDelete(e.key)).Commit()
		if err != nil || r.Succeeded {
			return err == nil && l.holds(i) && !e.Broken, err
		}
	}
}
