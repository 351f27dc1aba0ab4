package redislock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// How many names one script is asked about, so that it takes the server half a millisecond: whether
// there are claims, and which.
const (
	asked = 500
	shown = 100
)

// counted returns the names that have a counter, in order.
func (d *Driver) counted(ctx context.Context, prefix string) ([]string, error) {
	return redisstore.Names(ctx, d.store.Conn, redisstore.Glob(redisstore.SideKeys+"*}:fence:", prefix), prefix, counterOf)
}

// inGroups runs a script for so many names at a time, on a cluster by slot. answered is given the
// answer for each group, or nil where a cluster is just moving its slot, or what one of the names
// has is damaged.
func (d *Driver) inGroups(
	ctx context.Context, names []string, size int, call func(names []string) redisconn.Call, answered func(names []string, v any),
) error {
	groups := redisstore.Groups(d.store, names, size, func(name string) string { return name })
	for part := range slices.Chunk(groups, 16) {
		calls := make([]redisconn.Call, len(part))
		for i, group := range part {
			calls[i] = call(group)
		}
		replies, err := redisstore.Together(ctx, d.store.Run, d.store.Timeout, calls)
		if err != nil {
			return err
		}
		for i, reply := range replies {
			if reply.Err != nil && !redisconn.Is(reply.Err, "TRYAGAIN") && !redisconn.Is(reply.Err, "CORRUPT") {
				return reply.Err
			}
			answered(part[i], reply.Value)
		}
	}
	return nil
}

// liveNames returns the names with claims that hold or wait, and those that have a counter, each
// in order. It goes through the keys of all lines and counters, and asks of the latter which are
// held. Where one of several masters cannot be reached it returns the names of the others, and in
// missing what says so.
func (d *Driver) liveNames(ctx context.Context, prefix string) (live, counted []string, missing, err error) {
	counted, missing = redisstore.Names(ctx, d.store.Conn, redisstore.Glob(redisstore.SideKeys+"*}:[fl][ei]n*e:", prefix), prefix, func(key string) string {
		if name := counterOf(key); name != "" {
			return name
		}
		if name := lineOf(key); name != "" && strings.HasPrefix(name, prefix) {
			live = append(live, name)
		}
		return ""
	})
	err = d.inGroups(ctx, counted, asked, func(names []string) redisconn.Call {
		return redisconn.Call{Script: standingScript, Keys: names, Again: redisconn.Idempotent}
	}, func(names []string, v any) {
		numbers, ok := v.([]any)
		if !ok {
			live = append(live, names...) // it is not known
		}
		for _, n := range numbers {
			if n, _ := n.(int64); n > 0 && n <= int64(len(names)) {
				live = append(live, names[n-1])
			}
		}
	})
	if err != nil {
		return nil, counted, missing, fmt.Errorf("ask which names are free: %w", err)
	}
	slices.Sort(live)
	return slices.Compact(live), counted, missing, nil
}

// Prune implements driver.Pruner: it deletes the counters of such names, also those that were
// written without an end. A later claim begins at the server's time, so tokens go on growing
// unless the server's clock was set back by more than idle meanwhile.
func (d *Driver) Prune(ctx context.Context, prefix string, idle time.Duration) (removed int, err error) {
	if idle < leastKept {
		return 0, fmt.Errorf("redislock: prune: idle for %v: want %v or more: %w", idle, leastKept, driver.ErrRefused)
	}
	names, err := d.counted(ctx, prefix)
	if err == nil {
		err = d.inGroups(ctx, names, asked, func(names []string) redisconn.Call {
			call := redisconn.Call{
				Script: pruneScript, Keys: make([]string, 0, 3*len(names)), Args: []string{strconv.FormatInt(idle.Microseconds(), 10)}, Again: redisconn.Idempotent,
			}
			for _, name := range names {
				k := keysOf(name)
				call.Keys = append(call.Keys, k.name, k.counter, k.line)
			}
			return call
		}, func(_ []string, v any) {
			n, _ := v.(int64)
			removed += int(n)
		})
	}
	if err != nil {
		return removed, fmt.Errorf("redislock: prune: %w", err)
	}
	return removed, nil
}
