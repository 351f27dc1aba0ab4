//go:build linux || darwin

package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// What follows is V7: whoever has closed everything is back where it began, and so are the servers.

func (t traces) beyond(was traces) bool {
	return t.goroutines > was.goroutines || t.descriptors > was.descriptors
}

// tracesNow counts. What the runtime opens for the network when it is first used is open already.
func tracesNow() traces { return traces{int64(runtime.NumGoroutine()), int64(len(descriptors()))} }

// descriptors says what each open descriptor of this process is, as far as the system tells.
func descriptors() (all []string) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join("/dev/fd", e.Name()))
		if err == nil || !errors.Is(err, os.ErrNotExist) { // the one by which the folder was read is gone
			all = append(all, e.Name()+" "+to)
		}
	}
	return all
}

// tidyIn is how long a process that runs may take until everything that it has closed has ended.
const tidyIn = 15 * time.Second

// began counts what a worker has before it opens the store.
func (d *diary) began() traces {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
	}
	return tracesNow()
}

// tidied writes down what a worker has that closed everything, when that is no more than before or does not become less.
func (d *diary) tidied(was traces, path string) {
	ctx, cancel := running(context.Background(), tidyIn)
	own := traces{goroutines: 1} // what counts the time
	left := tracesNow()
	for ; ctx.Err() == nil; left = tracesNow() {
		if left.goroutines -= own.goroutines; !left.beyond(was) {
			break
		}
		pause(5*time.Millisecond, ctx.Done())
	}
	starved := errors.Is(context.Cause(ctx), errStarved)
	cancel()
	if starved {
		return
	}
	if left.beyond(was) {
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s\n", strings.Join(descriptors(), "\n"))
		_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
		_ = os.WriteFile(path, b.Bytes(), 0o600)
	}
	for i, n := range []int64{was.goroutines, was.descriptors, left.goroutines, left.descriptors} {
		d.head.traces[i].Store(n)
	}
}

// leavings returns what a worker wrote down; nil if it did not come to that.
func (d *diary) leavings(path string) *leavings {
	t := &d.head.traces
	if t[0].Load() == 0 {
		return nil
	}
	l := &leavings{traces{t[0].Load(), t[1].Load()}, traces{t[2].Load(), t[3].Load()}, ""}
	if text, err := os.ReadFile(path); err == nil {
		l.what = string(text[:min(len(text), 4000)])
	}
	return l
}

// checkTidy is the half of V7 that is about workers: one that has closed everything has no more goroutines and descriptors,
// connections among them, than before it opened the store.
func checkTidy(hs *history) finding {
	var f finding
	for _, l := range hs.lives {
		if l.leavings == nil {
			continue
		}
		f.cases++
		if was, left := l.leavings.was, l.leavings.left; left.beyond(was) {
			f.accuse(0, l.lastBeat, "%v has closed everything, and has %d goroutines and %d descriptors; before it opened the store there were %d and %d:\n%s",
				l, left.goroutines, left.descriptors, was.goroutines, was.descriptors, l.leavings.what)
		}
	}
	return f
}

// census is what servers have when nobody uses them.
type census struct {
	connections int // of clients
	entries     int // keys, rows, nodes: whatever they keep
	each        int // entries that stay of a name that was locked and waited for, such as its counter
}

// count is the census of servers, where there are any and they let themselves be counted.
func (s *servers) count(ctx context.Context) (c census, err error) {
	if c.connections, err = s.connections(ctx); err == nil {
		c.entries, err = s.entries(ctx)
	}
	return c, err
}

// least is the least of several counts: what was just closed may be there for a moment.
func (s *servers) least(ctx context.Context) (least census, err error) {
	least = census{connections: math.MaxInt, entries: math.MaxInt}
	for range 10 {
		c, err := s.count(ctx)
		if err != nil {
			return c, err
		}
		least.connections, least.entries = min(c.connections, least.connections), min(c.entries, least.entries)
		pause(10*time.Millisecond, ctx.Done())
	}
	return least, ctx.Err()
}

// take is the census of servers before the workers come: after a name was locked twice, to see what stays of one. The conductor closes
// its own way to the store for that, and opens it again.
func (c *conductor) take(ctx context.Context) error {
	if c.servers == nil || c.was != nil {
		return nil
	}
	if err := c.store.Close(ctx); err != nil {
		return err
	}
	var was, before census
	for _, name := range []string{"first", "second"} {
		before = was
		if err := c.lockOnce(ctx, name); err != nil {
			return fmt.Errorf("torture: lock a name before the workers come: %w", err)
		}
		var err error
		if was, err = c.servers.least(ctx); err != nil {
			return fmt.Errorf("torture: count what servers have: %w", err)
		}
	}
	was.each = max(was.entries-before.entries, 0)
	c.was = &was
	var err error
	c.store, err = openStore(ctx, c.Store)
	return err
}

// lockOnce opens the store, has a name locked by one while another one waits for it, and then by that one, and closes everything.
func (c *conductor) lockOnce(ctx context.Context, name string) (err error) {
	name = "torture/" + c.id + "/" + name
	var clients []*interlock.Client
	var store driver.Driver
	for range 2 {
		var failed error
		if store, failed = openStore(ctx, c.Store); failed != nil {
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
	if errors.Is(released, interlock.ErrLost) || errors.Is(released, interlock.ErrUncertain) { // on a slow machine
		released = nil
	}
	return errors.Join(released, <-next)
}

// awaitLine waits until somebody stands behind a holder, where the store lets itself be looked into.
func awaitLine(ctx context.Context, store driver.Driver, name string) {
	inspector, ok := store.(driver.Inspector)
	for range 100 {
		pause(5*time.Millisecond, ctx.Done())
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

// checkServers is the other half of V7: when everybody has closed everything servers have the connections that they had, and of each
// name what stays of one that was locked once. The conductor closes its own way to the store for that, and opens it again.
func (c *conductor) checkServers(ctx context.Context, out *round) error {
	if c.was == nil {
		return nil
	}
	if err := c.store.Close(ctx); err != nil {
		return err
	}
	within, cancel := running(ctx, c.TTL+tidyIn)
	defer cancel()
	want := census{connections: c.was.connections, entries: c.was.entries + c.was.each*c.placed}
	var is census
	var err error
	for ; ; pause(20*time.Millisecond, within.Done()) {
		is, err = c.servers.count(ctx)
		if err == nil && is.connections <= want.connections && is.entries <= want.entries || within.Err() != nil {
			break
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("torture: count what servers have: %w", err)
	case errors.Is(context.Cause(within), errStarved):
		out.untold++
	case is.connections > want.connections || is.entries > want.entries:
		out.kept = append(out.kept, violation{at: now(), what: fmt.Sprintf("nobody uses the servers any more, and they have %d connections and %d entries; before the workers came there were %d and %d, with %d for each of %d names since%s",
			is.connections, is.entries, want.connections, c.was.entries, c.was.each, c.placed, c.servers.besideCounters())})
		c.was.connections, c.was.entries = max(is.connections, want.connections), c.was.entries+max(is.entries-want.entries, 0) // it is told once
		fallthrough
	default:
		out.counted++
	}
	c.store, err = reach(ctx, c.Store)
	return err
}

// portsOf are the ports at which clients reach the servers.
func (s *servers) portsOf() (ports []int) {
	if s.postgres != nil && s.postgres.pooler != nil {
		return []int{s.postgres.pooler.Port()}
	}
	for _, n := range s.nodes() {
		ports = append(ports, n.Port())
	}
	return ports
}

// connections is how many connections of clients the servers have. Where servers are clients of each other at the same ports they are
// asked, and of others the system is.
func (s *servers) connections(context.Context) (n int, err error) {
	if s.sentinels == nil && s.cluster == nil {
		return established(s.portsOf())
	}
	for _, node := range s.nodes() {
		text, err := node.Do("CLIENT", "LIST", "TYPE", "normal")
		if err != nil {
			return 0, err
		}
		n += strings.Count(text, "id=") - strings.Count(text, " name=sentinel-") - 1 // which asks
	}
	return n, nil
}

// established is how many connections there are at the ends of servers, also such of which the client has hung up.
func established(ports []int) (n int, err error) {
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) { // another system, or one without the sixth version
			continue
		}
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "01" && f[3] != "08" {
				continue
			}
			if slices.ContainsFunc(ports, func(port int) bool { return strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) }) {
				n++
			}
		}
	}
	return n, nil
}
