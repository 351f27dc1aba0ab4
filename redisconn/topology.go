package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// topology is which master owns which slot of a cluster, as one of its nodes said last.
//
// Every acquire asks it, so the answer is the last one known, at once. An answer that is old, or
// that an error or a redirection makes doubtful, is replaced in the background; current waits for
// that. When slots turn out to have other masters than before, moves yields a value.
type topology struct {
	ask   func(ctx context.Context) (*slotTable, error)
	moves chan struct{}

	table  atomic.Pointer[slotTable] // nil before the first answer
	doubt  atomic.Bool
	asking atomic.Bool // in the background

	mu   sync.Mutex // held by the one who asks
	last time.Time  // of the last question, with or without success
}

// slotTable is one answer.
type slotTable struct {
	masters []string
	owner   [Slots]uint16 // 1 + the place of the slot's master in masters, or 0
	read    time.Time
}

const (
	fresh   = 2 * time.Second        // how long an answer counts without an error or a redirection
	between = 100 * time.Millisecond // the least time between two questions
)

// unknown is the name of a master that is not known.
const unknown = "unknown"

func newTopology(ask func(ctx context.Context) (*slotTable, error)) *topology {
	return &topology{ask: ask, moves: make(chan struct{}, 1)}
}

// owner returns the master of a slot, as far as it is known now.
func (t *topology) owner(slot int) string {
	table := t.table.Load()
	if table == nil || t.doubt.Load() || time.Since(table.read) > fresh {
		t.refresh()
	}
	return table.master(slot)
}

func (table *slotTable) master(slot int) string {
	if table == nil || table.owner[slot] == 0 {
		return unknown
	}
	return table.masters[table.owner[slot]-1]
}

// suspect says that the answer may be out of date.
func (t *topology) suspect() {
	t.doubt.Store(true)
	t.refresh()
}

// refresh asks in the background.
func (t *topology) refresh() {
	if !t.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer t.asking.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), DefaultTimeout)
		defer cancel()
		_, _ = t.current(ctx, between) // what is known stays better than nothing
	}()
}

// current returns an answer that is no older than age and not in doubt. It asks at most once in a
// short while.
func (t *topology) current(ctx context.Context, age time.Duration) (*slotTable, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := t.table.Load()
	if table != nil && (time.Since(t.last) < between || !t.doubt.Load() && time.Since(table.read) < age) {
		return table, nil
	}
	t.doubt.Store(false) // what happens from now on casts doubt on the coming answer, too
	t.last = time.Now()
	next, err := t.ask(ctx)
	if err != nil {
		t.doubt.Store(true)
		return table, fmt.Errorf("redisconn: ask the cluster for its slots: %w", err)
	}
	next.read = t.last
	t.table.Store(next)
	if table != nil && !slices.EqualFunc(table.owner[:], next.owner[:], func(was, is uint16) bool {
		return was == 0 && is == 0 || was != 0 && is != 0 && table.masters[was-1] == next.masters[is-1]
	}) {
		select {
		case t.moves <- struct{}{}:
		default:
		}
	}
	return next, nil
}

// parseSlots reads the answer to CLUSTER SLOTS: [from, to, [host, port, …], replicas…] for each
// range. A node that does not know its own host means the one under which it was asked.
func parseSlots(v any, asked string) (*slotTable, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("redisconn: the cluster answered CLUSTER SLOTS with something else")
	}
	table := &slotTable{}
	for _, item := range list {
		fields, _ := item.([]any)
		if len(fields) < 3 {
			return nil, errors.New("redisconn: the cluster answered CLUSTER SLOTS with a range that has no master")
		}
		from, ok1 := fields[0].(int64)
		to, ok2 := fields[1].(int64)
		if !ok1 || !ok2 || from < 0 || to < from || to >= Slots {
			return nil, fmt.Errorf("redisconn: the cluster answered CLUSTER SLOTS with a range from %v to %v", fields[0], fields[1])
		}
		master, err := parseNode(fields[2], asked)
		if err != nil {
			return nil, err
		}
		if master == "" {
			continue
		}
		at := slices.Index(table.masters, master)
		if at < 0 {
			at = len(table.masters)
			table.masters = append(table.masters, master)
		}
		for slot := from; slot <= to; slot++ {
			table.owner[slot] = uint16(at + 1) //nolint:gosec // there are no more masters than slots
		}
	}
	if len(table.masters) == 0 {
		return nil, errors.New("redisconn: the cluster answered CLUSTER SLOTS without a master")
	}
	return table, nil
}

// parseNode returns the address of a node, or "" where the cluster does not say it.
func parseNode(v any, asked string) (string, error) {
	node, _ := v.([]any)
	if len(node) < 2 {
		return "", errors.New("redisconn: the cluster answered CLUSTER SLOTS with a master that has no address")
	}
	host, _ := node[0].(string)
	port, _ := node[1].(int64)
	if host == "?" || port == 0 {
		return "", nil
	}
	if host == "" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10)), nil
}
