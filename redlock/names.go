package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/gather"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// some is how many names one script is asked about: it takes a master half a millisecond. One that
// removes them is given batch.
const some = 500

// counted returns the names that have a counter, in order, as a majority of the masters or more
// know them. A claim that holds has drawn a counter on each of its masters, and one that stands in
// line there has made one, so no other name is of interest. When a majority has told, the others
// get as long as patience says, or all the time that they take if it says 0.
func (d *Driver) counted(ctx context.Context, prefix string, patience time.Duration) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the scans of those that are late
	defer cancel()
	var mu sync.Mutex
	var names []string
	found := func(keys []string) error {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range keys {
			if name := nameOf(key); name != "" && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		return nil
	}
	var errs []error
	there := 0
	gather.Answers(context.WithoutCancel(ctx), len(d.nodes), patience, func(i int) error {
		n := d.nodes[i]
		err := n.conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
			page := func(ctx context.Context, words ...string) (any, error) {
				ctx, cancel := context.WithTimeout(ctx, d.options.NodeTimeout)
				defer cancel()
				return do(ctx, words...)
			}
			return redisstore.Scan(ctx, page, redisstore.Glob(redisstore.SideKeys+"*}:qfence:", prefix), found)
		})
		if err != nil {
			err = fmt.Errorf("redlock: list names on %s: %w", n.name, redisconn.Classify(err))
		}
		return err
	}, func(_ int, err error) bool {
		if err != nil {
			errs = append(errs, err)
		} else {
			there++
		}
		return there >= d.quorum && patience > 0
	})
	if there < d.quorum {
		return nil, errors.Join(errs...)
	}
	mu.Lock()
	defer mu.Unlock()
	all := slices.Clone(names)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// inGroups runs a script for many names on all masters, so many at a time, and returns those of
// which one of the masters gives the number, in their order.
func (d *Driver) inGroups(ctx context.Context, names []string, size int, call func(names []string) redisconn.Call) (chosen []string, err error) {
	for group := range slices.Chunk(names, size) {
		c := call(group)
		picked := make([]bool, len(group))
		f, err := d.everywhere(ctx, func(*node) (redisconn.Call, bool) { return c, true }, func(_ *node, v any) error {
			numbers, ok := v.([]any)
			if !ok {
				return errors.New("redlock: the server answered something else than numbers of names")
			}
			for _, n := range numbers {
				if n, _ := n.(int64); n > 0 && n <= int64(len(group)) {
					picked[n-1] = true
				}
			}
			return nil
		}, nil)
		if err == nil && f.answered() < d.quorum {
			err = f.unavailable(d.shared)
		}
		for i, name := range group {
			if picked[i] {
				chosen = append(chosen, name)
			}
		}
		if err != nil {
			return chosen, err
		}
	}
	return chosen, nil
}

// occupied returns those names, in their order, at which something stands on a master that answers.
func (d *Driver) occupied(ctx context.Context, names []string) ([]string, error) {
	standing, err := d.inGroups(ctx, names, some, func(names []string) redisconn.Call {
		call := redisconn.Call{Script: occupiedScript, Keys: make([]string, 0, 2*len(names))}
		for _, name := range names {
			call.Keys = append(call.Keys, name, keysOf(name).line)
		}
		return call
	})
	if err != nil {
		return nil, fmt.Errorf("redlock: ask which names are free: %w", err)
	}
	return standing, nil
}

// Prune implements driver.Pruner: it deletes the counters of such names, on the masters that
// answer. Each master draws above what it has deleted from then on, so that tokens go on growing
// whatever clocks do.
func (d *Driver) Prune(ctx context.Context, prefix string, idle time.Duration) (removed int, err error) {
	if idle < 0 {
		return 0, fmt.Errorf("redlock: prune: idle for %v: want 0 or more: %w", idle, driver.ErrRefused)
	}
	names, err := d.counted(ctx, prefix, 0)
	if err != nil {
		return 0, fmt.Errorf("redlock: prune: %w", err)
	}
	gone, err := d.inGroups(ctx, names, batch, func(names []string) redisconn.Call {
		call := redisconn.Call{Script: pruneScript, Keys: make([]string, 0, 2+3*len(names)), Args: []string{strconv.FormatInt(idle.Microseconds(), 10)}}
		call.Keys = append(call.Keys, membership.FloorKey, membership.HighKey)
		for _, name := range names {
			k := keysOf(name)
			call.Keys = append(call.Keys, k.name, k.counter, k.line)
		}
		return call
	})
	if err != nil {
		return len(gone), fmt.Errorf("redlock: prune: %w", err)
	}
	return len(gone), nil
}
