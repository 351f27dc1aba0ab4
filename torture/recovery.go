//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// slack is how long after the end of a TTL a name must be there.
const slack = 2 * time.Second

// probe is the first half of V6: every name can be had within TTL + 2 s after the faults, of which
// only those count in which the conductor ran.
func probe(ctx context.Context, c *conductor, out *round, dir string, names []string, ended monotonic.Instant) {
	client, err := interlock.New(c.store, &interlock.Options{
		Owner: "torture conductor", TTL: c.TTL, Grace: c.Grace, Patience: c.TTL + slack, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		out.errors = append(out.errors, err)
		return
	}
	defer client.Close() //nolint:contextcheck // Close is bounded and takes no context
	d, err := worker.OpenLog(filepath.Join(dir, "log-conductor"))
	if err != nil {
		out.errors = append(out.errors, err)
		return
	}
	defer d.Close()
	defer d.Pulse()()
	ctx, cancel := monotonic.Running(ctx, c.TTL+slack+c.traits.Grain+c.traits.Notice-monotonic.Now().Sub(ended))
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, name := range names {
		all.Go(func() {
			lease, err := client.Mutex(name).Lock(ctx)
			took := monotonic.Now().Sub(ended)
			var released error
			var ran time.Duration
			if err == nil {
				released = lease.Release()
				monotonic.Pause(2*worker.SilenceAfter, nil) // a silence is logged when it ends
				ran = d.Life(0, 0).Ran(monotonic.Now().Add(-c.TTL), monotonic.Now())
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil && starved(d, ended) {
				out.void++
				return
			}
			out.probes++
			if err != nil {
				out.stuck = append(out.stuck, history.Violation{Name: i, At: monotonic.Now(), What: fmt.Sprintf("cannot be had %v after the faults: %v", took, err)})
				return
			}
			out.slowest = max(out.slowest, took)
			// The conductor suffers no fault, so it must not lose a lease while it runs. A
			// store that is slow to answer leaves it uncertain.
			if errors.Is(released, interlock.ErrUncertain) && !errors.Is(released, interlock.ErrLost) {
				out.void++
			} else if released != nil && ran > c.TTL-c.Grace/2 {
				out.errors = append(out.errors, fmt.Errorf("the conductor, which ran all the time, could not release: %w", released))
			}
		})
	}
	all.Wait()
}

// starved reports whether the process of a log did not run for an eighth of the time since an
// instant. Then servers and workers did not either, and what has not happened yet may be on its
// way.
func starved(d *worker.Log, since monotonic.Instant) bool {
	monotonic.Pause(2*worker.SilenceAfter, nil) // a silence is logged when it ends
	t := monotonic.Now()
	return d.Life(0, 0).Ran(since, t) < t.Sub(since)*7/8
}

// findLeftovers is the second half of V6: TTL + 1 s after the last worker has ended no claim stands
// in any line, as far as the store can be inspected.
//
// Of several masters one that was stopped, or has an old memory, may carry out what was sent by a
// process that is dead by then: the next claim finds that, and clears it away. So there all claims
// must be gone when the name was locked once more.
func findLeftovers(ctx context.Context, c *conductor, out *round, names []string) {
	inspector, ok := c.store.(driver.Inspector)
	if !ok || slices.Contains(c.Faults, FaultClock) {
		return // a master whose clock was ahead keeps what it then had for as long as that
	}
	prefix := names[0][:strings.LastIndexByte(names[0], '/')+1]
	within, cancel := monotonic.Running(ctx, c.TTL+c.traits.Grain+time.Second)
	defer func() { cancel() }()
	for ; ; monotonic.Pause(20*time.Millisecond, ctx.Done()) {
		lines, err := inspector.Lines(ctx, prefix)
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		var left []string
		for _, l := range lines {
			for _, h := range l.Claims {
				left = append(left, fmt.Sprintf("%s: a claim of %s, held %v, until %v", l.Name, h.Owner.Name, h.Held, h.Until))
			}
		}
		if err == nil && len(left) == 0 {
			out.probes++
			return
		}
		if within.Err() != nil && err == nil && out.swept == 0 && c.servers != nil && c.servers.Independent() {
			out.swept = len(lines)
			err = comeBy(ctx, c, lines)
			cancel()
			within, cancel = monotonic.Running(ctx, time.Second)
			if err == nil {
				continue
			}
		}
		if errors.Is(context.Cause(within), monotonic.ErrStarved) {
			out.void++
			return
		}
		if within.Err() != nil || ctx.Err() != nil {
			out.probes++
			what := strings.Join(left, "; ")
			if err != nil {
				what = err.Error()
			}
			out.stuck = append(out.stuck, history.Violation{At: monotonic.Now(), What: "left behind in the store: " + what})
			return
		}
	}
}

// comeBy locks every name once.
func comeBy(ctx context.Context, c *conductor, lines []driver.Line) error {
	client, err := interlock.New(c.store, &interlock.Options{Owner: "torture conductor", TTL: c.TTL, Grace: c.Grace, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:contextcheck // Close is bounded and takes no context
	ctx, cancel := context.WithTimeout(ctx, c.TTL+slack)
	defer cancel()
	for _, l := range lines {
		lease, err := client.Mutex(l.Name).Lock(ctx)
		if err != nil {
			return err
		}
		if err := lease.Release(); err != nil {
			return err
		}
	}
	return nil
}

// useOnce acquires a name, if it is free, and releases it.
func useOnce(ctx context.Context, c *conductor) {
	client, err := interlock.New(c.store, &interlock.Options{Owner: "torture conductor", TTL: c.TTL, Grace: c.Grace, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return
	}
	defer client.Close() //nolint:contextcheck // Close is bounded and takes no context
	if lease, err := client.Mutex("torture/" + c.id + "/first").TryLock(ctx); err == nil {
		_ = lease.Release()
	}
}
