package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// topology is which master owns which slots of a cluster, as one of its nodes said.
type topology struct {
	mu     sync.Mutex
	ranges []slotRange
	read   time.Time
}

type slotRange struct {
	from, to int
	master   string
}

// fresh is how long an answer is taken for true. A master that changes meanwhile shows by a redirection or by a
// connection that ends, and both make the topology forgotten.
const fresh = 10 * time.Second

func (t *topology) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = time.Time{}
}

func (t *topology) current(ctx context.Context, c Conn) ([]slotRange, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.read) < fresh {
		return t.ranges, nil
	}
	v, err := c.Do(ctx, Command{Words: []string{"CLUSTER", "SLOTS"}})
	if err != nil {
		return t.ranges, fmt.Errorf("redisconn: ask the cluster for its slots: %w", err)
	}
	ranges, err := parseSlots(v)
	if err != nil {
		return t.ranges, err
	}
	t.ranges, t.read = ranges, time.Now()
	return ranges, nil
}

// owner returns the master of a slot, or "" where nobody knows it. A list that could not be renewed is better than none.
func (t *topology) owner(c Conn, slot int) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	ranges, _ := t.current(ctx, c)
	for _, r := range ranges {
		if r.from <= slot && slot <= r.to {
			return r.master
		}
	}
	return ""
}

func (t *topology) masters(ctx context.Context, c Conn) ([]string, error) {
	ranges, err := t.current(ctx, c)
	if err != nil {
		return nil, err
	}
	var masters []string
	for _, r := range ranges {
		if !slices.Contains(masters, r.master) {
			masters = append(masters, r.master)
		}
	}
	slices.Sort(masters)
	return masters, nil
}

// parseSlots reads the answer to CLUSTER SLOTS: [from, to, [host, port, …], replicas…] for each range.
func parseSlots(v any) ([]slotRange, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("redisconn: the cluster answered CLUSTER SLOTS with something else")
	}
	ranges := make([]slotRange, 0, len(list))
	for _, item := range list {
		fields, _ := item.([]any)
		if len(fields) < 3 {
			return nil, errors.New("redisconn: the cluster answered CLUSTER SLOTS with a range that has no master")
		}
		node, _ := fields[2].([]any)
		if len(node) < 2 {
			return nil, errors.New("redisconn: the cluster answered CLUSTER SLOTS with a master that has no address")
		}
		from, _ := fields[0].(int64)
		to, _ := fields[1].(int64)
		host, _ := node[0].(string)
		port, _ := node[1].(int64)
		ranges = append(ranges, slotRange{int(from), int(to), net.JoinHostPort(host, strconv.FormatInt(port, 10))})
	}
	return ranges, nil
}
