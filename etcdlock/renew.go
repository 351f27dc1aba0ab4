package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	var about []*claim
	for _, c := range s.claims {
		switch {
		case c.Landing() != nil:
		case c.Leaving && !c.Left: // its Release had no answer, and perhaps nobody repeats it
			s.d.wg.Go(func() { _, _ = s.release(s.d.ctx, c) })
		case c.state == waiting || c.state == held:
			about = append(about, c)
		}
	}
	before := maps.Clone(s.slots)
	s.mu.Unlock()
	rctx, cancel := s.d.within(ctx, s.timeout)
	defer cancel()
	renewed := make(chan error, 1)
	go func() { renewed <- s.keepAlive(rctx) }()
	keys, err := s.keys(rctx)
	if err = errors.Join(err, <-renewed); err == nil {
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

// compare has the claims know what the list of keys says of them, and looks at the lines of those that wait. The list is what one member has
// carried out so far, which may be less than another one has: what it lacks is asked for.
func (s *session) compare(ctx context.Context, about []*claim, before map[string]*claim, keys map[string]bool) error {
	marks := s.key() + "/"
	var missing, waits, surplus []*claim
	s.mu.Lock()
	for _, c := range about {
		switch {
		case c.Leaving || c.Landing() != nil || c.state >= broken:
		case keys[s.mark(c)]:
			c.end(broken)
		case !keys[c.key]:
			missing = append(missing, c)
		case c.state == waiting:
			waits = append(waits, c)
		}
	}
	for key := range keys {
		if before[key] != nil || s.slots[key] != nil || key == s.key() || strings.HasPrefix(key, marks) || !s.isOwn(key) {
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
	for some := range slices.Chunk(waits, maxOps) {
		if err := s.lookAll(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// maxOps are of one transaction; etcd's usual limit is 128.
const maxOps = 100

// lookAll looks at the lines in which claims wait.
func (s *session) lookAll(ctx context.Context, claims []*claim) error {
	var ops []clientv3.Op
	for _, c := range claims {
		ops = append(ops, clientv3.OpGet(s.d.options.line(c.Name), clientv3.WithPrefix()))
	}
	r, err := s.d.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return err
	}
	for i, c := range claims {
		l, err := s.d.readLine(c.Name, r.Responses[i].GetResponseRange().Kvs)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if c.state == waiting && !c.Leaving {
			_, err = c.stands(&l) // one that does not has gone since the keys were listed
		}
		s.mu.Unlock()
		if err != nil {
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
