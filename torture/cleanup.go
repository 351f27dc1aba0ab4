//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
	"github.com/interlock-go/interlock/torture/internal/servers"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// countServers counts what servers have before the workers come: after a name was locked twice, to
// see what stays of one. The conductor closes its own connection to the store for that, and opens
// it again.
func countServers(ctx context.Context, c *conductor) error {
	if c.servers == nil || c.was != nil {
		return nil
	}
	if err := c.store.Close(ctx); err != nil {
		return err
	}
	var was, before baseline
	for _, name := range []string{"first", "second"} {
		before = was
		if err := lockOnce(ctx, c, name); err != nil {
			return fmt.Errorf("torture: lock a name before the workers come: %w", err)
		}
		var err error
		if was.Census, err = c.servers.Least(ctx); err != nil {
			return fmt.Errorf("torture: count what servers have: %w", err)
		}
	}
	was.each = max(was.Entries-before.Entries, 0)
	c.was = &was
	var err error
	c.store, err = worker.OpenStore(ctx, c.Store)
	return err
}

// lockOnce opens the store, locks a name by one client while another one waits for it, and then by
// that one, and closes everything.
func lockOnce(ctx context.Context, c *conductor, name string) (err error) {
	name = "torture/" + c.id + "/" + name
	var clients []*interlock.Client
	var store driver.Driver
	for range 2 {
		var failed error
		if store, failed = worker.OpenStore(ctx, c.Store); failed != nil {
			return failed
		}
		defer func(s driver.Driver) { err = errors.Join(err, s.Close(ctx)) }(store)
		client, failed := interlock.New(store, &interlock.Options{Owner: "torture conductor", TTL: c.TTL, Grace: c.Grace, Logger: slog.New(slog.DiscardHandler)})
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, client.Close()) }()
		clients = append(clients, client)
	}
	lease, err := clients[0].Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	next := make(chan error, 1)
	go func() {
		lease, err := clients[1].Mutex(name).Lock(ctx)
		if err == nil {
			err = lease.Release()
		}
		next <- err
	}()
	awaitLine(ctx, store, name)
	released := lease.Release()
	// on a slow machine
	if errors.Is(released, interlock.ErrLost) || errors.Is(released, interlock.ErrUncertain) {
		released = nil
	}
	return errors.Join(released, <-next)
}

// awaitLine waits until a claim stands behind the holder, where the store can be inspected.
func awaitLine(ctx context.Context, store driver.Driver, name string) {
	inspector, ok := store.(driver.Inspector)
	for range 100 {
		monotonic.Pause(5*time.Millisecond, ctx.Done())
		if !ok {
			continue
		}
		line, err := inspector.Line(ctx, name)
		if len(line.Claims) > 1 {
			return
		}
		ok = err == nil
	}
}

// recountServers is the half of V7 that is about servers: when all clients have closed everything
// they have the connections that they had, and of each name what stays of one that was locked once.
// The conductor closes its own connection to the store for that, and opens it again.
func recountServers(ctx context.Context, c *conductor, out *round) error {
	if c.was == nil {
		return nil
	}
	if err := c.store.Close(ctx); err != nil {
		return err
	}
	within, cancel := monotonic.Running(ctx, c.TTL+worker.TidyIn)
	defer cancel()
	want := servers.Census{Connections: c.was.Connections, Entries: c.was.Entries + c.was.each*c.placed}
	var is servers.Census
	var err error
	for ; ; monotonic.Pause(20*time.Millisecond, within.Done()) {
		is, err = c.servers.Count(ctx)
		if err == nil && is.Connections <= want.Connections && is.Entries <= want.Entries || within.Err() != nil {
			break
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("torture: count what servers have: %w", err)
	case errors.Is(context.Cause(within), monotonic.ErrStarved):
		out.untold++
	case is.Connections > want.Connections || is.Entries > want.Entries:
		out.kept = append(out.kept, history.Violation{At: monotonic.Now(), What: fmt.Sprintf("nobody uses the servers any more, and they have %d connections and %d entries; before the workers came there were %d and %d, with %d for each of %d names since%s",
			is.Connections, is.Entries, want.Connections, c.was.Entries, c.was.each, c.placed, c.servers.Unexpected())})
		// it is told once
		c.was.Connections, c.was.Entries = max(is.Connections, want.Connections), c.was.Entries+max(is.Entries-want.Entries, 0)
		fallthrough
	default:
		out.counted++
	}
	c.store, err = worker.Reach(ctx, c.Store)
	return err
}
