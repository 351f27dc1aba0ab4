package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// conn is a Conn over rueidis.
type conn struct {
	client rueidis.Client
	cmds   rueidis.Builder
	made   *atomic.Uint64 // connections; nil where the client is the user's
	own    bool
	warden *warden    // nil where the client is the user's
	solo   sync.Mutex // of the command that is alone

	topology topology
}

// Rueidis makes a Conn of a client that the program has. The client stays open when the Conn is closed.
//
// Rueidis repeats commands by itself only when they read; a lock's never do. It does not tell when it makes a new
// connection, so each grant asks the server for its time: [Open] saves that.
func Rueidis(client rueidis.Client) Conn {
	return &conn{client: client, cmds: client.B()}
}

// Do implements Conn. A command that is alone has a connection of its own; others share one, where they keep their order.
func (c *conn) Do(ctx context.Context, cmd Command) (any, error) {
	if c.warden != nil && !cmd.Behind && c.solo.TryLock() {
		defer c.solo.Unlock()
		until := untilDeadline(ctx)
		until.abandons, until.alone = true, true
		defer until.finish()
		c.warden.enter(ctx)
		defer c.warden.leave()
		return c.answer(c.client.Do(until, c.build(cmd, true)).ToAny())
	}
	until := c.bound(ctx)
	defer until.finish()
	return c.answer(c.client.Do(until, c.build(cmd, false)).ToAny())
}

// DoAll implements Conn.
func (c *conn) DoAll(ctx context.Context, cmds []Command) []Reply {
	built := make([]rueidis.Completed, len(cmds))
	for i, cmd := range cmds {
		built[i] = c.build(cmd, false)
	}
	replies := make([]Reply, len(cmds))
	until := c.bound(ctx)
	defer until.finish()
	for i, r := range c.client.DoMulti(until, built...) {
		replies[i].Value, replies[i].Err = c.answer(r.ToAny())
	}
	return replies
}

// bound makes the context of commands that share a connection.
func (c *conn) bound(ctx context.Context) *deadline {
	d := untilDeadline(ctx)
	d.abandons = c.warden != nil
	return d
}

// Abandons implements Conn.
func (c *conn) Abandons() bool { return c.warden != nil }

// build makes a command of rueidis. What rueidis takes for a command that blocks gets a connection from its pool.
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

// answer turns what rueidis says into what Conn says.
func (c *conn) answer(v any, err error) (any, error) {
	if err == nil {
		return v, nil
	}
	if rueidis.IsRedisNil(err) {
		return nil, nil //nolint:nilnil // a nil answer is an answer
	}
	if answer, ok := rueidis.IsRedisErr(err); ok {
		e := ParseError(answer.Error())
		if e.Code == "MOVED" || e.Code == "CLUSTERDOWN" {
			c.topology.forget()
		}
		return nil, e
	}
	return nil, err
}

// EachMaster implements Conn.
func (c *conn) EachMaster(ctx context.Context, visit func(do DoFunc) error) error {
	if c.client.Mode() != rueidis.ClientModeCluster {
		return visit(c.doing(c.client))
	}
	masters, err := c.topology.masters(ctx, c)
	if err != nil {
		return err
	}
	for _, addr := range masters {
		node, err := c.node(addr)
		if err != nil {
			return err
		}
		if err := visit(c.doing(node)); err != nil {
			return err
		}
	}
	return nil
}

// node returns the client of a master. One that has met no other node yet does not know its own host: it is the one with
// that port.
func (c *conn) node(addr string) (rueidis.Client, error) {
	nodes := c.client.Nodes()
	if node, ok := nodes[addr]; ok {
		return node, nil
	}
	for known, node := range nodes {
		if strings.HasPrefix(addr, ":") && strings.HasSuffix(known, addr) {
			return node, nil
		}
	}
	return nil, fmt.Errorf("redisconn: the client does not know the master %s yet", addr)
}

func (c *conn) doing(node rueidis.Client) DoFunc {
	return func(ctx context.Context, words ...string) (any, error) {
		until := untilDeadline(ctx)
		defer until.finish()
		return c.answer(node.Do(until, node.B().Arbitrary(words...).Build()).ToAny())
	}
}

// Subscribe implements Conn.
func (c *conn) Subscribe(ctx context.Context, key, channel string, heard func(payload string)) (*Subscription, error) {
	node := c.Node(key)
	client := c.client
	if node != "" {
		var err error
		if client, err = c.node(node); err != nil {
			c.topology.forget()
			return nil, err
		}
	} else if c.client.Mode() == rueidis.ClientModeCluster {
		return nil, errors.New("redisconn: the cluster does not tell which master owns the slot")
	}
	dedicated, giveBack := client.Dedicate()
	var once sync.Once
	confirmed, closed := make(chan struct{}), make(chan struct{})
	errs := dedicated.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { heard(m.Message) },
		OnSubscription: func(rueidis.PubSubSubscription) { once.Do(func() { close(confirmed) }) },
	})
	end := func() {
		dedicated.Close()
		giveBack()
	}
	until := untilDeadline(ctx)
	defer until.finish()
	if err := dedicated.Do(until, dedicated.B().Subscribe().Channel(channel).Build()).Error(); err != nil {
		end()
		_, err = c.answer(nil, err)
		return nil, err
	}
	go func() {
		<-errs
		close(closed)
	}()
	select {
	case <-confirmed:
		return NewSubscription(node, closed, end), nil
	case <-closed:
		end()
		return nil, errors.New("redisconn: the connection of a subscription was closed")
	case <-ctx.Done():
		end()
		return nil, ctx.Err()
	}
}

// Node implements Conn.
func (c *conn) Node(key string) string {
	if c.client.Mode() != rueidis.ClientModeCluster {
		return ""
	}
	return c.topology.owner(c, Slot(key))
}

// Generation implements Conn.
func (c *conn) Generation() uint64 {
	if c.made == nil {
		return 0
	}
	return c.made.Load()
}

// Close implements Conn.
func (c *conn) Close() {
	if c.own {
		c.client.Close()
	}
}
