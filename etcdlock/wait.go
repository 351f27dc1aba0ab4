package etcdlock

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// Wait implements driver.Session: it blocks until an event has moved the claim's state. Subscribe, then look, then wait: the view looks for
// all who wait when it has begun to hear.
func (s *session) Wait(ctx context.Context, dc driver.Claim) (driver.Grant, error) {
	c, err := s.claim(dc)
	if err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	st, deep := c.state, c.deep
	s.mu.Unlock()
	switch st {
	case out: // Acquire had no answer
		return s.Acquire(ctx, dc)
	case waiting:
	default:
		return s.answer(c, nil)
	}
	if deep {
		return s.waitBehind(ctx, c)
	}
	v, err := s.d.view(c)
	if err != nil {
		return s.answer(c, err)
	}
	defer v.leave(c)
	select {
	case <-v.ready:
	case <-ctx.Done():
		return s.answer(c, ctx.Err())
	}
	v.settle()
	for {
		s.mu.Lock()
		st, missed := c.state, c.missed
		s.mu.Unlock()
		if st != waiting {
			return s.answer(c, nil)
		}
		if missed { // broken, or with the session, or just gone
			return s.Acquire(ctx, dc)
		}
		select {
		case <-c.change:
		case <-v.over:
			if v.err != nil {
				s.d.options.Logger.Debug("etcdlock: a watch has ended", "name", c.Name, "error", v.err)
			}
			pause(ctx, again)
			if s.d.ctx.Err() != nil {
				return s.answer(c, errClosed)
			}
			if err := ctx.Err(); err != nil {
				return s.answer(c, err)
			}
			if v.err != nil {
				return s.answer(c, fmt.Errorf("etcdlock: wait: %w", v.err))
			}
			return s.answer(c, nil) // to be called again
		case <-ctx.Done():
			return s.answer(c, ctx.Err())
		}
	}
}

// waitBehind is the Wait of a claim that has many before it: it hears of the last of those alone, as package concurrency does, so that
// a release wakes few, however many wait.
func (s *session) waitBehind(ctx context.Context, c *claim) (driver.Grant, error) {
	hearing, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	before := append(clientv3.WithLastCreate(), clientv3.WithPrefix(), clientv3.WithMaxCreateRev(c.create-1), clientv3.WithKeysOnly())
	r, err := s.d.client.Get(hearing, s.d.options.line(c.Name), before...)
	if err != nil {
		return s.answer(c, fmt.Errorf("etcdlock: wait: %w", classify(err)))
	}
	if len(r.Kvs) > 0 {
		// It may be told late, if the revision has passed, but everything.
		events := s.d.client.Watch(hearing, string(r.Kvs[0].Key), clientv3.WithRev(r.Header.Revision+1), clientv3.WithFilterPut())
		select {
		case <-c.change: // a renewal, or an end
		case r, ok := <-events:
			if !ok || r.Err() != nil {
				pause(ctx, again) // then it looks
			}
		case <-ctx.Done():
			return s.answer(c, ctx.Err())
		}
	}
	s.mu.Lock()
	waits := c.state == waiting
	s.mu.Unlock()
	if !waits {
		return s.answer(c, nil)
	}
	return s.Acquire(ctx, c.Claim)
}
