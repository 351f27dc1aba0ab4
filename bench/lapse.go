package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// lapse is one holder killed with SIGKILL on a store that cannot see it die,
// so that another process holds when the lease is over and not before.
type lapse struct {
	adapter string
	ttl     time.Duration
}

func (l lapse) run(ctx context.Context, _ scale) (_ sample, err error) {
	at, err := openSite(ctx, l.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	// A server looks for keys that are over every 100 ms from its start on,
	// so a lease must not always end at the same time after it.
	ttl := l.ttl + rand.N(100*time.Millisecond).Round(time.Millisecond)
	s, err := startSuccession(ctx, at, l.adapter, ttl)
	defer s.stop()
	if err != nil {
		return nil, err
	}
	s.holder.kill()

	end, err := at.leaseEnd(ctx, adapters[l.adapter], contestName)
	if err != nil {
		return nil, err
	}
	var got int64
	if err := s.waiter.result(&got); err != nil {
		return nil, err
	}
	if a := adapters[l.adapter]; got < end && !a.etcd && !a.zookeeper {
		return nil, fmt.Errorf("exclusion violated: the waiter held %v before the lease was over", time.Duration(end-got))
	}
	return sample{latency: max(0, float64(got-end)/1e6)}, nil
}

// leaseEnd is when the server lets the lock of a name go, by now.
func (s *site) leaseEnd(ctx context.Context, a adapter, name string) (int64, error) {
	end := s.redisEnd
	switch {
	case a.postgres:
		end = s.postgresEnd
	case a.etcd:
		end = s.etcdEnd
	case a.zookeeper:
		end = s.zookeeperEnd
	}
	at, err := end(ctx, a, name)
	return now() + time.Until(at).Nanoseconds(), err
}

// redisEnd is the end of a key, which Redis keeps for the whole of the
// millisecond that PEXPIRETIME names.
func (s *site) redisEnd(_ context.Context, a adapter, name string) (time.Time, error) {
	key := a.keyOf(name).(string)
	text, err := s.redis[0].Do("PEXPIRETIME", key)
	if err != nil {
		return time.Time{}, err
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil || at < 0 {
		return time.Time{}, fmt.Errorf("bench: PEXPIRETIME %s is %q: the killed holder has no lease there", key, text)
	}
	return time.UnixMilli(at), nil
}

// postgresEnd asks the contender's own table.
func (s *site) postgresEnd(ctx context.Context, a adapter, name string) (time.Time, error) {
	seconds, err := s.query(ctx, a.ends, a.keyOf(name))
	if err != nil {
		return time.Time{}, fmt.Errorf("bench: when does the lease of the killed holder end: %w", err)
	}
	return time.UnixMicro(int64(seconds * 1e6)), nil
}
