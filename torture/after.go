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
)

// slack is how long after the end of a TTL a name must be there.
const slack = 2 * time.Second

// probe is the first half of V6: every name can be had within TTL + 2 s after the faults, of which only those count in which
// the conductor ran.
func (c *conductor) probe(ctx context.Context, out *round, dir string, names []string, ended instant) {
	client, err := interlock.New(c.store, &interlock.Options{
		Owner: "torture conductor", TTL: c.TTL, Grace: c.Grace, Patience: c.TTL + slack, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		out.errors = append(out.errors, err)
		return
	}
	defer client.Close() //nolint:contextcheck // Close is bounded and takes no context
	d, err := openDiary(filepath.Join(dir, "diary-conductor"))
	if err != nil {
		out.errors = append(out.errors, err)
		return
	}
	defer d.close()
	stop := make(chan struct{})
	var beating sync.WaitGroup
	for range beats {
		beating.Go(func() { d.beat(stop) })
	}
	defer beating.Wait()
	defer close(stop)
	ctx, cancel := running(ctx, c.TTL+slack+c.traits.Grain+c.traits.Notice-now().sub(ended))
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, name := range names {
		all.Go(func() {
			lease, err := client.Mutex(name).Lock(ctx)
			took := now().sub(ended)
			var released error
			var ran time.Duration
			if err == nil {
				released = lease.Release()
				pause(2*silenceAfter, nil) // a silence is written down when it ends
				ran = d.life(0, 0).ran(now().add(-c.TTL), now())
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil && starved(d, ended) {
				out.void++
				return
			}
			out.probes++
			if err != nil {
				out.stuck = append(out.stuck, violation{name: i, at: now(), what: fmt.Sprintf("cannot be had %v after the faults: %v", took, err)})
				return
			}
			out.slowest = max(out.slowest, took)
			// Nobody does anything to the conductor, so it must not lose a lease while it runs. A store that is slow to answer
			// leaves it uncertain.
			if errors.Is(released, interlock.ErrUncertain) && !errors.Is(released, interlock.ErrLost) {
				out.void++
			} else if released != nil && ran > c.TTL-c.Grace/2 {
				out.errors = append(out.errors, fmt.Errorf("the conductor, which ran all the time, could not release: %w", released))
			}
		})
	}
	all.Wait()
}

// starved reports whether the process of a diary did not run for an eighth of the time since an instant. Then servers and
// workers did not either, and what has not happened yet may be on its way.
func starved(d *diary, since instant) bool {
	pause(2*silenceAfter, nil) // a silence is written down when it ends
	t := now()
	return d.life(0, 0).ran(since, t) < t.sub(since)*7/8
}

// leftovers is the second half of V6: TTL + 1 s after the last worker has ended nobody stands in any line, as far as
// the store lets itself be looked into.
//
// Of several masters one that was stopped, or has an old memory, may carry out what was sent by somebody who is dead by
// then: who comes by next finds that nobody hears, and clears it away. So there everybody else must be gone when somebody
// has come by.
func (c *conductor) leftovers(ctx context.Context, out *round, names []string) {
	inspector, ok := c.store.(driver.Inspector)
	if !ok || slices.Contains(c.Faults, FaultClock) {
		return // a master whose clock was ahead keeps what it then had for as long as that
	}
	prefix := names[0][:strings.LastIndexByte(names[0], '/')+1]
	within, cancel := running(ctx, c.TTL+c.traits.Grain+time.Second)
	defer func() { cancel() }()
	for ; ; pause(20*time.Millisecond, ctx.Done()) {
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
		if within.Err() != nil && err == nil && out.swept == 0 && c.servers != nil && c.servers.masters != nil {
			out.swept = len(lines)
			err = c.comeBy(ctx, lines)
			cancel()
			within, cancel = running(ctx, time.Second)
			if err == nil {
				continue
			}
		}
		if errors.Is(context.Cause(within), errStarved) {
			out.void++
			return
		}
		if within.Err() != nil || ctx.Err() != nil {
			out.probes++
			what := strings.Join(left, "; ")
			if err != nil {
				what = err.Error()
			}
			out.stuck = append(out.stuck, violation{at: now(), what: "left behind in the store: " + what})
			return
		}
	}
}

// comeBy takes every name once.
func (c *conductor) comeBy(ctx context.Context, lines []driver.Line) error {
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

// use wants a name once, and gives it back.
func (c *conductor) use(ctx context.Context) {
	client, err := interlock.New(c.store, &interlock.Options{Owner: "torture conductor", TTL: c.TTL, Grace: c.Grace, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return
	}
	defer client.Close() //nolint:contextcheck // Close is bounded and takes no context
	if lease, err := client.Mutex("torture/" + c.id + "/first").TryLock(ctx); err == nil {
		_ = lease.Release()
	}
}
