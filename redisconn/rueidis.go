package redisconn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/redislink"
)

// conn is a Conn over rueidis.
type conn struct {
	client  rueidis.Client
	cmds    rueidis.Builder
	made    *atomic.Uint64 // connections; nil where the client is the user's
	own     bool
	config  Config     // by which it was opened; empty where the client is the user's
	watcher *watcher   // nil where the client is the user's
	solo    sync.Mutex // of the command that is alone

	stalledAt atomic.Int64 // the moment when a command over the user's client last had no answer in its time; 0 for never

	links *redislink.Links // the connections, or where the client is the user's the subscriptions

	topology *topology
}

func newConn(client rueidis.Client) *conn {
	c := &conn{client: client, cmds: client.B(), links: new(redislink.Links)}
	c.topology = newTopology(c.askSlots)
	return c
}

// Rueidis makes a Conn of a client that the program has. The client stays open when the Conn is
// closed.
//
// Make the client with a ConnWriteTimeout and a Dialer.KeepAlive of a few seconds: by default it
// takes longer to notice a connection that stands still, and until then each command takes a
// connection apart. Rueidis repeats commands by itself only when they read; a lock's never do.
func Rueidis(client rueidis.Client) Conn {
	return newConn(client)
}

// Do implements Conn. A command that is alone has a connection of its own; others share one, where
// they keep their order. One without keys goes to any node of a cluster that answers.
func (c *conn) Do(ctx context.Context, cmd Command) (any, error) {
	if cmd.Keys == 0 && c.clustered() {
		return c.anyNode(ctx, cmd.Words)
	}
	if cmd.Fresh || c.straying() || c.stalled() {
		reply := c.fresh(ctx, []Command{cmd})[0]
		return reply.Value, reply.Err
	}
	return c.do(ctx, cmd)
}

// do sends one command over a connection that the client has.
func (c *conn) do(ctx context.Context, cmd Command) (any, error) {
	if c.watcher != nil && !cmd.Behind && c.solo.TryLock() {
		defer c.solo.Unlock()
		until := untilDeadline(ctx)
		until.abandons, until.alone = true, true
		defer until.finish()
		c.watcher.enter(until)
		defer c.watcher.leave()
		return c.answered(ctx, cmd, c.client.Do(until, c.build(cmd, true)))
	}
	if c.connecting() {
		return aside(ctx, func() (any, error) { return c.amongOthers(ctx, cmd) }, nil)
	}
	return c.amongOthers(ctx, cmd)
}

func (c *conn) amongOthers(ctx context.Context, cmd Command) (any, error) {
	until := c.bound(ctx)
	defer c.finish(until)
	return c.answered(ctx, cmd, c.client.Do(until, c.build(cmd, false)))
}

// DoAll implements Conn. A few commands go as one that is alone does.
func (c *conn) DoAll(ctx context.Context, cmds []Command) []Reply {
	if len(cmds) > 0 && (cmds[0].Fresh || c.straying() || c.stalled()) {
		return c.fresh(ctx, cmds)
	}
	few := c.watcher != nil && len(cmds) <= 2 && !slices.ContainsFunc(cmds, func(cmd Command) bool { return cmd.Behind })
	if few && !c.clustered() && c.solo.TryLock() {
		defer c.solo.Unlock()
		return c.together(ctx, cmds, true)
	}
	if c.connecting() {
		return asideAll(ctx, cmds, func() []Reply { return c.together(ctx, cmds, false) })
	}
	return c.together(ctx, cmds, false)
}

// together sends commands over a connection that others share, or alone.
func (c *conn) together(ctx context.Context, cmds []Command, alone bool) []Reply {
	until := c.bound(ctx)
	defer c.finish(until)
	if alone {
		until.alone = true
		c.watcher.enter(until)
		defer c.watcher.leave()
	}
	built := make([]rueidis.Completed, len(cmds))
	for i, cmd := range cmds {
		built[i] = c.build(cmd, alone)
	}
	replies := make([]Reply, len(cmds))
	for i, r := range c.client.DoMulti(until, built...) {
		replies[i].Value, replies[i].Err = c.answer(r.ToAny())
	}
	c.found(ctx, cmds, replies)
	return replies
}

// connecting reports whether a connection that commands share has to be made, or is being made. A
// command that needs it waits inside rueidis, which ignores its context until the server has
// answered HELLO.
func (c *conn) connecting() bool {
	return c.watcher != nil && (c.watcher.making.Load() > 0 || int(c.watcher.made.Load()) < c.masters())
}

// masters is how many connections commands share when there is one to each master.
func (c *conn) masters() int {
	if table := c.topology.table.Load(); table != nil {
		return len(table.masters)
	}
	return 1
}

// bound makes the context of commands that share a connection.
func (c *conn) bound(ctx context.Context) *deadline {
	d := untilDeadline(ctx)
	d.abandons, d.since = c.watcher != nil, moment()
	return d
}

// finish ends the deadline of commands that share a connection. If it has passed without an answer,
// later commands do not wait for that connection: they would end in the same way.
func (c *conn) finish(until *deadline) {
	switch {
	case !until.finish():
	case c.watcher != nil:
		c.watcher.timedOut(until.since)
	default:
		c.stalledAt.Store(moment())
	}
}

// apartFor is how long commands avoid the shared connections of a user's client after one had no
// answer. Only the client can close such a connection, after its ConnWriteTimeout.
const apartFor = time.Minute

// stalled reports whether a shared connection of the user's client may be dead. Each command then
// gets a dedicated one, which has just answered.
func (c *conn) stalled() bool {
	at := c.stalledAt.Load()
	return at != 0 && moment()-at < int64(apartFor)
}

// Abandons implements Conn.
func (c *conn) Abandons() bool { return c.watcher != nil }

// build makes a command of rueidis. What rueidis takes for a command that blocks gets a connection
// from its pool.
func (c *conn) build(cmd Command, alone bool) rueidis.Completed {
	b := c.cmds.Arbitrary(cmd.Words[:max(cmd.First, 1)]...)
	if cmd.Keys > 0 {
		b = b.Keys(cmd.Words[cmd.First : cmd.First+cmd.Keys]...)
	}
	b = b.Args(cmd.Words[max(cmd.First, 1)+cmd.Keys:]...)
	if alone {
		return b.Blocking()
	}
	return b.Build()
}

// answered is what a server answered to a command, or the master where it was another one.
func (c *conn) answered(ctx context.Context, cmd Command, r rueidis.RedisResult) (any, error) {
	v, err := c.answer(r.ToAny())
	if Moved(cmd.Words, v, err) {
		replies := []Reply{{v, err}}
		c.found(ctx, []Command{cmd}, replies)
		return replies[0].Value, replies[0].Err
	}
	return v, err
}

// answer is what a master answered. One that does not, or that sends elsewhere, is perhaps no
// master any more.
func (c *conn) answer(v any, err error) (any, error) {
	v, err = read(v, err)
	var refusal *Error
	if err != nil && (!errors.As(err, &refusal) || refusal.Code == "MOVED" || refusal.Code == "CLUSTERDOWN") {
		c.suspect()
	}
	return v, err
}

// read turns what rueidis says into what Conn says.
func read(v any, err error) (any, error) {
	if err == nil {
		return v, nil
	}
	if rueidis.IsRedisNil(err) {
		return nil, nil //nolint:nilnil // a nil answer is an answer
	}
	return nil, answered(err)
}

// answered is what a server answered, where err is that. Rueidis leaves out the code ERR.
func answered(err error) error {
	answer, ok := rueidis.IsRedisErr(err)
	if !ok {
		return err
	}
	text := answer.Error()
	if code, _, _ := strings.Cut(text, " "); code != strings.ToUpper(code) {
		text = "ERR " + text
	}
	return ParseError(text)
}

// Generation implements Generations.
func (c *conn) Generation() uint64 {
	if c.made == nil {
		return 0
	}
	return c.made.Load()
}

// Close implements Conn. Rueidis puts a connection that it is just making where it has closed the
// one before, and keeps it for good.
func (c *conn) Close() {
	if c.own {
		c.client.Close()
		c.links.Close()
	}
}
