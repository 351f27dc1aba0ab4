package servertest

import (
	"context"
	"fmt"
)

// KillMaster kills the node at c.Nodes[i], which must be a master with a replica that is up, and
// returns when one of its replicas has its slots and every node that is up says that the Cluster
// works: three seconds or so. What the master had not yet sent to its replicas is lost. Restart
// brings the node back as a replica.
func (c *Cluster) KillMaster(ctx context.Context, i int) error {
	master := c.Nodes[i]
	slot, err := c.mayFail(i)
	if err != nil {
		return fmt.Errorf("servertest: killing the node at %s is no failover: %w", master.Addr(), err)
	}
	if err := master.Kill(); err != nil {
		return err
	}
	return poll(ctx, "no replica is promoted", func() error {
		owner := c.Owner(slot)
		if owner == nil || owner == master {
			return fmt.Errorf("slot %d is still the dead master's", slot)
		}
		if err := c.known(slot, owner); err != nil {
			return err
		}
		return c.working()
	})
}

// mayFail returns a slot of the node, or why its death would end the service.
func (c *Cluster) mayFail(i int) (slot int, err error) {
	s := c.Nodes[i]
	if !s.up() {
		return 0, fmt.Errorf("it does not run")
	}
	nodes, err := s.view()
	if err != nil {
		return 0, err
	}
	var self node
	for _, n := range nodes {
		if n.port == s.port {
			self = n
		}
	}
	if !self.master || len(self.ranges) == 0 {
		return 0, fmt.Errorf("it is no master with slots: %s", self.flags)
	}
	for _, n := range nodes {
		if at := c.index(n); n.masterID == self.id && n.sound && at >= 0 && c.Nodes[at].up() {
			return self.ranges[0][0], nil
		}
	}
	return 0, fmt.Errorf("it has no replica that could follow it")
}
