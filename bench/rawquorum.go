package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// rawQuorum is the floor of a free lock on several masters: SET NX PX and a
// script that compares and deletes, each sent to all masters at once and over
// when a majority has done it. One goroutine for each master keeps its
// commands in order, so that a release does not overtake its acquisition on a
// master that is late.
type rawQuorum struct {
	nodes  []*rawRedis
	orders []chan rawOrder
	drawn  atomic.Int64
	prefix string
}

// rawOrder is a command to one master; done hears whether it did it.
type rawOrder struct {
	does func(n *rawRedis) error
	done chan<- error
}

func openRawQuorum(ctx context.Context, p place) (locker, error) {
	q := &rawQuorum{prefix: fmt.Sprintf("raw:%020d:", p.Process)}
	for _, addr := range p.Redis {
		one := p
		one.Redis = []string{addr}
		l, err := openRawRedis(ctx, one)
		if err != nil {
			return nil, errors.Join(err, q.close())
		}
		n, orders := l.(*rawRedis), make(chan rawOrder, 64)
		q.nodes, q.orders = append(q.nodes, n), append(q.orders, orders)
		go func() {
			for o := range orders {
				o.done <- o.does(n)
			}
		}()
	}
	return q, nil
}

func (q *rawQuorum) mutex(name string) mutex { return rawQuorumKey{q, name} }

type rawQuorumKey struct {
	*rawQuorum
	name string
}

// lock asks once: it is for keys that nobody else wants.
func (k rawQuorumKey) lock(ctx context.Context) (func() error, error) {
	value := k.prefix + strconv.FormatInt(k.drawn.Add(1), 10)
	err := k.all(func(n *rawRedis) error {
		err := n.client.Do(ctx, n.client.B().Arbitrary("SET").Keys(k.name).Args(value, "NX", "PX", n.ttl).Build()).Error()
		if rueidis.IsRedisNil(err) {
			return errors.New("bench: the raw key is somebody else's")
		}
		return err
	})
	return func() error {
		return k.all(func(n *rawRedis) error { return rawKey{n, k.name}.unlock(ctx, value) })
	}, err
}

// all has every master do something, and returns when a majority has done it
// or cannot any more.
func (q *rawQuorum) all(does func(n *rawRedis) error) error {
	done := make(chan error, len(q.orders))
	for _, orders := range q.orders {
		orders <- rawOrder{does, done}
	}
	for yes, no := 0, 0; yes <= len(q.orders)/2; {
		if err := <-done; err == nil {
			yes++
		} else if no++; no > len(q.orders)/2 {
			return err
		}
	}
	return nil
}

func (q *rawQuorum) close() error {
	var err error
	for i, n := range q.nodes {
		close(q.orders[i])
		err = errors.Join(err, n.close())
	}
	return err
}
