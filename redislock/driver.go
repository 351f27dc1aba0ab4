package redislock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

var errClosed = fmt.Errorf("redislock: %w: the driver is closed", driver.ErrNotSent)

// Driver is a Redis as a store of locks. It is safe for concurrent use.
type Driver struct {
	conn    redisconn.Conn
	owned   bool // the connection was opened for this driver
	run     redisconn.Runner
	options Options
	server  server
	cluster bool

	ctx    context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel context.CancelFunc
	floor  floor
	batch  batcher
	soon   atomic.Bool // quiet runs
	quiet  *time.Timer

	mu        sync.Mutex
	closed    bool
	ears      map[string]*ear   // by master
	channels  map[string]string // of the ears to come
	sessions  map[*session]struct{}
	listeners map[string]*session // by ID of a claim that may wait
	ghosts    []ghost
	crowded   map[string]struct{} // names where others stood in line when last seen
}

// New makes a driver over a client that the program has; see [redisconn.Rueidis] and package redisconn/goredis. It looks
// at the server's configuration and logs what a lock could lose by it; with Options.Strict that is an error.
func New(ctx context.Context, conn redisconn.Conn, o *Options) (*Driver, error) {
	options := o.withDefaults()
	d := &Driver{
		conn: conn, run: redisconn.Runner{Conn: conn, Functions: options.Functions}, options: options,
		ears: map[string]*ear{}, channels: map[string]string{}, sessions: map[*session]struct{}{}, listeners: map[string]*session{}, crowded: map[string]struct{}{},
	}
	d.batch.d = d
	var err error
	if d.server, err = inspectServer(ctx, conn); err != nil {
		return nil, err
	}
	if err := d.server.judge(options); err != nil {
		return nil, err
	}
	d.cluster = conn.Node("x") != ""
	d.floor.none = d.cluster
	d.quiet = time.AfterFunc(time.Hour, d.listenForHolders)
	d.quiet.Stop()
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if moves := conn.Moves(); moves != nil {
		go d.follow(moves)
	}
	return d, nil
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: true, Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: d.server.appendOnly, Machine: d.server.appendOnly && d.server.syncs},
	}
}

const (
	minTTL = 50 * time.Millisecond
	grain  = 50 * time.Millisecond // of the head's look at a claim that has run out
)

// Key implements driver.Keyer: the name itself.
func (d *Driver) Key(name string) string { return name }

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < minTTL {
		return nil, fmt.Errorf("redislock: TTL %v: want %v or more: %w", spec.TTL, minTTL, driver.ErrRefused)
	}
	s := newSession(d, spec)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := d.contact(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	d.sessions[s] = struct{}{}
	return s, nil
}

// contact has the server answer, and learns its time.
func (d *Driver) contact(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- d.floor.ask(ctx, d.conn) }()
	select {
	case err := <-done:
		return redisconn.Classify(err)
	case <-ctx.Done():
		return fmt.Errorf("redislock: %w: %w", driver.ErrNotSent, ctx.Err())
	}
}

func (d *Driver) allSessions() []*session {
	all := make([]*session, 0, len(d.sessions))
	for s := range d.sessions {
		all = append(all, s)
	}
	return all
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	sessions, was := d.allSessions(), d.closed
	d.mu.Unlock()
	if was {
		return nil
	}
	errs := make(chan error, len(sessions))
	for _, s := range sessions {
		go func() { errs <- s.Close(ctx) }()
	}
	var err error
	for range sessions {
		err = errors.Join(err, <-errs)
	}
	d.mu.Lock()
	d.closed = true
	ears := d.ears
	d.ears = map[string]*ear{}
	d.mu.Unlock()
	d.quiet.Stop()
	d.cancel() // unsubscribed last: a process that cannot be told is skipped in line
	for _, e := range ears {
		select {
		case <-e.ready:
			if e.err == nil {
				e.sub.Close()
			}
		case <-ctx.Done():
		}
	}
	if d.owned {
		d.conn.Close()
	}
	return err
}

// hears has the messages for a claim go to its session, from before its ID is sent until it is released.
func (d *Driver) hears(id string, s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s == nil {
		delete(d.listeners, id)
	} else {
		d.listeners[id] = s
	}
}

// setCrowded remembers whether others stood in line at a name, which decides which script is tried first. It is only a
// guess, and is forgotten when it grows large.
func (d *Driver) setCrowded(name string, crowded bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !crowded:
		delete(d.crowded, name)
	case len(d.crowded) < 4096:
		d.crowded[name] = struct{}{}
	default:
		clear(d.crowded)
	}
}

// plan says whether others stood in line at a name when last seen, and the channel of this process at its master.
func (d *Driver) plan(name string) (crowded bool, channel string) {
	node := d.conn.Node(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	_, crowded = d.crowded[name]
	return crowded, d.channel(node)
}

func (o Options) logger() *slog.Logger {
	if o.Logger != nil {
		return o.Logger
	}
	return slog.Default()
}
