package redisconn

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"
)

func (c *conn) clustered() bool { return c.client.Mode() == rueidis.ClientModeCluster }

// Doubt implements Conn.
func (c *conn) Doubt() { c.suspect() }

// suspect makes the client ask a cluster again for its slots.
func (c *conn) suspect() {
	if c.clustered() {
		c.topology.suspect()
	}
}

// askSlots asks any node of the cluster.
func (c *conn) askSlots(ctx context.Context) (table *slotTable, err error) {
	err = c.eachNode(ctx, func(ctx context.Context, addr string, node rueidis.Client) error {
		v, err := read(node.Do(ctx, node.B().ClusterSlots().Build()).ToAny())
		if err == nil {
			table, err = parseSlots(v, addr)
		}
		return err
	})
	return table, err
}

// anyNode sends a command without keys.
func (c *conn) anyNode(ctx context.Context, words []string) (v any, err error) {
	err = c.eachNode(ctx, func(ctx context.Context, _ string, node rueidis.Client) error {
		v, err = read(node.Do(ctx, node.B().Arbitrary(words...).Build()).ToAny())
		return err
	})
	return v, err
}

// eachNode tries one node of the cluster after the other until one answers. One that does not may
// take a part of the time.
func (c *conn) eachNode(ctx context.Context, try func(ctx context.Context, addr string, node rueidis.Client) error) error {
	err := errors.New("redisconn: the client knows no node of the cluster")
	for addr, node := range c.client.Nodes() {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		some, cancel := context.WithTimeout(ctx, DefaultTimeout/4)
		until := untilDeadline(some) // by which the watcher finds the call of a connection
		until.abandons = true
		if err = try(until, addr, node); err != nil && Broken(err) { // the connection may have ended while it was idle
			err = try(until, addr, node)
		}
		until.finish()
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

// masterOf returns the master that owns key, and its name, from an answer that is not older than a
// moment.
func (c *conn) masterOf(ctx context.Context, key string) (string, rueidis.Client, error) {
	switch c.client.Mode() {
	case rueidis.ClientModeCluster:
		table, err := c.topology.current(ctx, between)
		if err != nil {
			return "", nil, err
		}
		slot := Slot(key)
		master, err := c.known(ctx, table.master(slot), slot)
		return table.master(slot), master, err
	case rueidis.ClientModeSentinel:
		for addr, master := range c.client.Nodes() {
			return addr, master, nil
		}
	}
	return "", c.client, nil
}

// lastMasterOf returns the master that owned key by the last answer, at once, or nil. A new
// question may go over a dead connection and take time; a wrong master redirects.
func (c *conn) lastMasterOf(key string) rueidis.Client {
	return c.client.Nodes()[c.topology.owner(Slot(key))]
}

// known returns the client's connections to a master. A client that has not met it yet does so by a
// command for a slot that the master owns: the old owner sends it there.
func (c *conn) known(ctx context.Context, addr string, slot int) (rueidis.Client, error) {
	if addr == unknown {
		return nil, errors.New("redisconn: the cluster does not tell which master owns the slot")
	}
	if node, ok := c.client.Nodes()[addr]; ok {
		return node, nil
	}
	_, err := c.Do(ctx, Command{Words: []string{"PTTL", numberFor(slot)}, First: 1, Keys: 1, Behind: true})
	if node, ok := c.client.Nodes()[addr]; ok {
		return node, nil
	}
	return nil, errors.Join(fmt.Errorf("redisconn: the client does not know the master %s yet", addr), err)
}

// EachMaster implements Conn.
func (c *conn) EachMaster(ctx context.Context, visit func(do DoFunc) error) error {
	if !c.clustered() {
		err := visit(c.doing(c.client))
		if err != nil && c.client.Mode() == rueidis.ClientModeSentinel { // whose addresses say nothing of the master's
			for addr := range c.client.Nodes() {
				err = fmt.Errorf("the master %s: %w", addr, err)
			}
		}
		return err
	}
	table, err := c.topology.current(ctx, between)
	if err != nil {
		return err
	}
	visited := make([]bool, len(table.masters)+1)
	for slot, at := range table.owner {
		if at == 0 || visited[at] {
			continue
		}
		visited[at] = true
		node, err := c.known(ctx, table.master(slot), slot)
		if err != nil {
			return err
		}
		if err := visit(c.doing(node)); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) doing(node rueidis.Client) DoFunc {
	return func(ctx context.Context, words ...string) (any, error) {
		until := untilDeadline(ctx)
		defer until.finish()
		return c.answered(ctx, Command{Words: words}, node.Do(until, node.B().Arbitrary(words...).Build()))
	}
}

// Node implements Conn.
func (c *conn) Node(key string) string {
	if !c.clustered() {
		return ""
	}
	return c.topology.owner(Slot(key))
}

// Moves implements Conn.
func (c *conn) Moves() <-chan struct{} {
	if !c.clustered() {
		return nil
	}
	return c.topology.moves
}
