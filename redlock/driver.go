package redlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// Driver is a number of independent Redis masters as one store of locks. It is safe for concurrent
// use.
type Driver struct {
	*shared
	durable bool // no master forgets anything when it restarts
	owned   bool // the connections were opened for this driver
}

// maxNodes bounds the number of masters; more than seven are of no use.
const maxNodes = 31

// New makes a driver over masters that the program has clients of: see [redisconn.Rueidis] and
// package redisconn/goredis. Their number is odd, and each is a Redis of its own. A majority of
// them must answer, and all of them the first time. While too few can be reached it asks again,
// until ctx ends, or for 15 s where that has no deadline.
func New(ctx context.Context, conns []redisconn.Conn, o *Options) (*Driver, error) {
	return opening.Wait(ctx, func(ctx context.Context) (*Driver, error) { return newDriver(ctx, conns, o, false) })
}

// newDriver is New by one try. One that looks changes nothing of what the masters have on record.
func newDriver(ctx context.Context, conns []redisconn.Conn, o *Options, looks bool) (*Driver, error) {
	if len(conns)%2 == 0 || len(conns) > maxNodes {
		return nil, fmt.Errorf("redlock: %d masters: want an odd number up to %d, such as 3 or 5: an even one bears no more failures than one less: %w", len(conns), maxNodes, driver.ErrRefused)
	}
	options := o.withDefaults()
	if err := options.check(); err != nil {
		return nil, err
	}
	e := &env{options: options, looks: looks}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	s := &shared{env: e, quorum: membership.Majority(len(conns)), seen: map[string]int64{}}
	d := &Driver{shared: s}
	e.observer = s
	d.holding = redisstore.NewHolding(d.subscribeHolders)
	config := membership.Config{
		Conns: conns, MaxTTL: options.MaxTTL, Timeout: options.NodeTimeout, Needs: commands, Looks: looks, Logger: options.Logger,
		Ctx: e.ctx, Background: &e.serving,
		Unanswered: func(i int) { s.nodes[i].unanswered() }, Forgot: func(i int) { s.forgotten(s.nodes[i]) },
	}
	for i, conn := range conns {
		config.Names = append(config.Names, nameOfMaster(i, conn))
	}
	d.members = membership.New(config)
	for i, conn := range conns {
		d.nodes = append(d.nodes, newNode(e, i, conn, d.members.Master(i)))
	}
	found := d.members.Probe(ctx)
	if found.Err != nil {
		d.cancel()
		return nil, d.withOthers(found)
	}
	d.durable = !slices.ContainsFunc(found.Infos, func(i membership.Info) bool { return i.Err != nil || !i.Durable })
	if found.Missing {
		d.members.Recheck()
	}
	for i, info := range found.Infos {
		if info.Evicts != "" {
			d.options.Logger.Warn("interlock: redlock: a full master throws locks away while they are held: set its maxmemory-policy to noeviction",
				"master", d.nodes[i].name, "policy", info.Evicts)
		}
	}
	d.serving.Add(len(d.nodes) + 1)
	go func() {
		defer d.serving.Done()
		d.members.Watch()
	}()
	for _, n := range d.nodes {
		go n.serve()
	}
	return d, nil
}

// withOthers is the error of a probe with what else keeps masters away that it does not name: who
// cannot open cannot ask for [Driver.Masters].
func (d *Driver) withOthers(found membership.Result) error {
	err := found.Err
	for i, why := range found.Away {
		if why != nil && !strings.Contains(err.Error(), d.nodes[i].name) {
			err = fmt.Errorf("%w; %s: %v", err, d.nodes[i].name, why) //nolint:errorlint // the first is what the error is
		}
	}
	return err
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Mixed: true, Events: driver.AllKinds, Expires: true, Fence: driver.Durable,
		MinTTL: minTTL, MaxTTL: d.options.MaxTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: d.durable, Machine: d.durable},
	}
}

const grain = 50 * time.Millisecond // of the head's look at a claim that has run out

// Key implements driver.Keyer: the name itself.
func (d *Driver) Key(name string) string { return name }

// Stats counts what a driver has done since it was made.
type Stats struct {
	Grants uint64 // claims that were held
	Raises uint64 // of these, how many had to write their token back first because the masters' counters differed
	Yields uint64 // steps back from a master for a claim with an older ticket
}

// Stats returns the counts so far.
func (d *Driver) Stats() Stats {
	return Stats{Grants: d.grants.Load(), Raises: d.raises.Load(), Yields: d.yields.Load()}
}

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < minTTL || spec.TTL > d.options.MaxTTL {
		return nil, fmt.Errorf("redlock: TTL %v: want %v to %v, which is Options.MaxTTL: %w", spec.TTL, minTTL, d.options.MaxTTL, driver.ErrRefused)
	}
	if d.looks {
		return nil, fmt.Errorf("redlock: the masters were opened for a look, by driver.LookURL: want driver.OpenURL for a session: %w", driver.ErrRefused)
	}
	s := newSession(d.shared, spec)
	if _, err := s.Renew(ctx); err != nil {
		return nil, err
	}
	if !d.sessions.Add(s) {
		return nil, errClosed
	}
	return s, nil
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if !first {
		return nil
	}
	d.holding.Stop()
	for _, n := range d.nodes {
		n.drain(ctx)
	}
	d.cancel() // unsubscribed last: a process that cannot be told is skipped in line
	served := make(chan struct{})
	go func() {
		d.serving.Wait()
		close(served)
	}()
	select {
	case <-served:
	case <-ctx.Done(): // some clients do not look at a context while they connect
	}
	if d.owned {
		var all sync.WaitGroup
		for _, n := range d.nodes {
			all.Go(func() { redisstore.Close(ctx, n.conn) })
		}
		all.Wait()
	}
	return err
}
