package main

import (
	"errors"
	"testing"
)

// A majority decides, and who is late is not waited for.
func TestRawQuorumWaitsForAMajority(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	refuses := errors.New("refused")
	for _, c := range []struct {
		yes, no int // the others are stuck
		want    error
	}{{3, 0, nil}, {3, 2, nil}, {0, 3, refuses}, {2, 3, refuses}} {
		q := &rawQuorum{}
		answers := map[*rawRedis]func() error{}
		for i := range masters {
			n, orders := &rawRedis{}, make(chan rawOrder, 1)
			q.nodes, q.orders = append(q.nodes, n), append(q.orders, orders)
			answers[n] = func() error {
				switch {
				case i < c.yes:
					return nil
				case i < c.yes+c.no:
					return refuses
				}
				<-stuck
				return nil
			}
			go func() {
				for o := range orders {
					o.done <- o.does(n)
				}
			}()
		}
		if err := q.all(func(n *rawRedis) error { return answers[n]() }); !errors.Is(err, c.want) {
			t.Errorf("%d yes, %d no: %v, want %v", c.yes, c.no, err, c.want)
		}
		for _, orders := range q.orders {
			close(orders)
		}
	}
}
