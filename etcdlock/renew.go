package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// Renew implements driver.Session. It renews the lease and, beside that, has the store list the lease's keys: a claim whose key is missing is
// gone, a mark says that one is broken, and a key that nobody here knows was left behind by a request that was given up. The lines of claims
// that wait are read, since an event may have been lost.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.closed || s.lost {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	var about, stuck []*claim
	names := map[string][]*claim{}
	for _, c := range s.claims {
		switch {
		case c.Landing() != nil:
		case c.Leaving && !c.Left:
			stuck = append(stuck, c) // its Release had no answer, and perhaps nobody repeats it
		case c.state == waiting || c.state == held:
			about = append(about, c)
			if c.state == waiting {
				names[c.Name] = append(names[c.Name], c)
			}
		}
	}
	before := map[string]bool{}
	for key := range s.slots {
		before[key] = true
	}
	s.mu.Unlock()
	for _, c := range stuck {
		s.d.wg.Go(func() { _, _ = s.release(s.d.ctx, c) })
	}
	rctx, cancel := s.d.within(ctx, s.timeout)
	defer cancel()
	renewed, looked := make(chan error, 1), make(chan error, 1)
	go func() { renewed <- s.keepAlive(rctx) }()
	go func() { looked <- s.lookAll(rctx, names) }()
	keys, err := s.keys(rctx)
	err = errors.Join(err, <-renewed, <-looked)
	if err == nil {
		err = s.compare(rctx, about, before, keys)
	}
	if err != nil {
		if err = s.failed(err); errors.Is(err, driver.ErrSessionLost) {
			return driver.Renewal{}, driver.ErrSessionLost
		}
		return driver.Renewal{}, fmt.Errorf("etcdlock: renew: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		return driver.Renewal{}, driver.ErrSessionLost
	}
	r := driver.Renewal{Valid: s.valid()}
	for _, c := range s.claims {
		if !c.Leaving && c.state >= broken {
			r.Lost = append(r.Lost, c.ID)
		}
	}
	return r, nil
}

// keys are those of the lease.
func (s *session) keys(ctx context.Context) (map[string]bool, error) {
	r, err := s.d.client.TimeToLive(ctx, s.lease, clientv3.WithAttachedKeys())
	if err != nil {
		return nil, err
	}
	if r.TTL <= 0 {
		return nil, driver.ErrSessionLost
	}
	keys := make(map[string]bool, len(r.Keys))
	for _, key := range r.Keys {
		keys[string(key)] = true
	}
	return keys, nil
}

// compare has the claims know what the list of keys says of them. It is what one member has carried out so far, which may be less than
// another one has: what it lacks is asked for.
func (s *session) compare(ctx context.Context, about []*claim, before, keys map[string]bool) error {
	marks := s.key() + "/"
	var missing []*claim
	s.mu.Lock()
	for _, c := range about {
		switch {
		case c.Leaving || c.Landing() != nil || c.state >= broken:
		case keys[s.mark(c)]:
			c.end(broken)
		case !keys[c.key]:
			missing = append(missing, c)
		}
	}
	var surplus []*claim
	for key := range keys {
		if before[key] || s.slots[key] != nil || key == s.key() || strings.HasPrefix(key, marks) || !s.isOwn(key) {
			continue
		}
		c := s.newClaim(driver.Claim{})
		c.key, s.slots[key] = key, c // nobody else uses it until it is away
		surplus = append(surplus, c)
	}
	s.mu.Unlock()
	for _, c := range surplus {
		_, err := s.d.client.Delete(ctx, c.key)
		s.mu.Lock()
		delete(s.slots, c.key)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	for _, c := range missing {
		if _, err := s.look(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// isOwn reports whether a key is of a claim of this session.
func (s *session) isOwn(key string) bool {
	_, slot := cutLast(key)
	return strings.HasPrefix(key, s.d.options.Namespace) && isSlot(slot, int64(s.lease))
}

// lookAll looks at the lines in which claims wait.
func (s *session) lookAll(ctx context.Context, names map[string][]*claim) error {
	var ops []clientv3.Op
	var of []string
	ask := func() error {
		r, err := s.d.client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return err
		}
		for i, name := range of {
			l, err := readLine(name, s.d.options.line(name), r.Responses[i].GetResponseRange().Kvs, false)
			if err != nil {
				return err
			}
			s.mu.Lock()
			for _, c := range names[name] {
				if c.state == waiting && !c.Leaving {
					_, failed := c.stands(&l) // one that does not is not in the list of keys, either
					err = errors.Join(err, failed)
				}
			}
			s.mu.Unlock()
			if err != nil {
				return err
			}
		}
		ops, of = nil, nil
		return nil
	}
	for name := range names {
		ops, of = append(ops, clientv3.OpGet(s.d.options.line(name), clientv3.WithPrefix())), append(of, name)
		if len(ops) == maxOps {
			if err := ask(); err != nil {
				return err
			}
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return ask()
}
