package servertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Cluster is a Redis Cluster whose nodes take one another for dead after a second of silence.
type Cluster struct {
	// Nodes are the masters, then the first replica of each, then the second of each; a failover
	// exchanges roles and not places.
	Nodes   []*Server
	masters int
}

// StartCluster starts a Cluster of that many masters, with that many replicas each, and returns
// when every node says that it works and every replica gets whatever is written to its master; a
// master waits two seconds by itself. The options are those of every node; the ports are chosen,
// and where Dir is given each node has a folder in it.
func StartCluster(ctx context.Context, masters, replicas int, o Options) (_ *Cluster, err error) {
	if masters < 1 || replicas < 0 {
		return nil, fmt.Errorf("servertest: a Cluster has at least one master, not %d, with no fewer than 0 replicas, not %d", masters, replicas)
	}
	if err := o.several(); err != nil {
		return nil, err
	}
	c := &Cluster{Nodes: make([]*Server, masters*(1+replicas)), masters: masters}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := together(len(c.Nodes), func(i int) (err error) {
		c.Nodes[i], err = startIn(ctx, clustered, o, "node-"+strconv.Itoa(i+1))
		return err
	}); err != nil {
		return nil, err
	}
	if err := c.form(ctx); err != nil {
		return nil, err
	}
	return c, poll(ctx, "the Cluster does not come up", c.ready)
}

// RedisCluster starts a Cluster for the test and closes it at its end. The arguments are those of
// every node.
func RedisCluster(t TB, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Cluster, error) {
		return StartCluster(ctx, masters, replicas, Options{Args: args})
	})
}

// clustered is one node, with a second port for the other nodes.
var clustered = redisWith(func(s *Server) ([]string, error) {
	if err := s.reserveBus(); err != nil {
		return nil, err
	}
	args, err := redis.args(s)
	return slices.Concat([]string{
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "1000", "--cluster-port", strconv.Itoa(s.bus),
	}, args), err
})

// form gives the masters their slots and epochs, introduces everybody to everybody, which is
// quicker than gossip, and ties the replicas to their masters.
func (c *Cluster) form(ctx context.Context) error {
	if err := together(len(c.Nodes), func(i int) error {
		if i < c.masters {
			first, last := i*slots/c.masters, (i+1)*slots/c.masters-1
			if _, err := c.Nodes[i].Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
				return err
			}
		}
		_, err := c.Nodes[i].Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		return err
	}); err != nil {
		return err
	}
	for i, from := range c.Nodes {
		for _, to := range c.Nodes[:i] {
			if _, err := from.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(to.port), strconv.Itoa(to.bus)); err != nil {
				return err
			}
		}
	}
	return together(len(c.Nodes), func(i int) error {
		if i < c.masters {
			return nil
		}
		master, err := c.Nodes[i%c.masters].Do("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		return poll(ctx, "a replica does not meet its master", func() error {
			_, err := c.Nodes[i].Do("CLUSTER", "REPLICATE", master)
			return err
		})
	})
}

// ready returns what is missing for every node to work and every failover to be possible.
func (c *Cluster) ready() error {
	if err := c.working(); err != nil {
		return err
	}
	for _, s := range c.Nodes {
		all, err := s.view()
		if err != nil {
			return err
		}
		if len(all) != len(c.Nodes) {
			return fmt.Errorf("the node at %s knows of %d nodes", s.Addr(), len(all))
		}
		for _, n := range all {
			if i := c.index(n); i < 0 || n.master != (i < c.masters) || !n.sound {
				return fmt.Errorf("the node at %s sees the one at %d as %q", s.Addr(), n.port, n.flags)
			}
		}
	}
	for i, s := range c.Nodes[c.masters:] {
		if err := c.Nodes[i%c.masters].feeds(s); err != nil {
			return err
		}
	}
	return nil
}

// working returns an error until every node that is up says that the Cluster works.
func (c *Cluster) working() error {
	for _, s := range c.Nodes {
		if !s.up() {
			continue
		}
		if err := s.shows("cluster_state:ok", "CLUSTER", "INFO"); err != nil {
			return err
		}
	}
	return nil
}

// index is the place of the node in c.Nodes, or -1.
func (c *Cluster) index(n node) int {
	for i, s := range c.Nodes {
		if s.port == n.port {
			return i
		}
	}
	return -1
}

// URL names all nodes.
func (c *Cluster) URL() string { return "redis+cluster://" + joined(c.Nodes) }

// Close kills all nodes and removes their folders.
func (c *Cluster) Close() error { return closeAll(c.Nodes...) }
