package servertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Slot is the slot of a key.
func (c *Cluster) Slot(key string) int { return Slot(key) }

// Owner returns the node that serves the slot, or nil if no node that is up names one. Where they
// differ, as for a moment after a failover, the claim with the latest epoch counts, as it does
// among them.
func (c *Cluster) Owner(slot int) *Server {
	var owner *Server
	epoch := -1
	for _, s := range c.Nodes {
		if !s.up() {
			continue
		}
		nodes, err := s.view()
		if err != nil {
			continue
		}
		for _, n := range nodes {
			if i := c.index(n); i >= 0 && n.owns(slot) && n.epoch > epoch {
				owner, epoch = c.Nodes[i], n.epoch
			}
		}
	}
	return owner
}

// Move gives the slot to another master, with its keys and their times of expiry, while clients go
// on: as long as it takes, they are sent to the new owner for each key that has left and told
// TRYAGAIN for commands whose keys are on both sides. It returns when every node that is up knows
// the new owner. A Move that fails leaves the slot half moved; repeating it goes on.
func (c *Cluster) Move(ctx context.Context, slot int, to *Server) error {
	from := c.Owner(slot)
	if from == nil {
		return fmt.Errorf("servertest: nobody owns slot %d", slot)
	}
	if from != to {
		if err := migrate(ctx, slot, from, to); err != nil {
			return fmt.Errorf("servertest: cannot move slot %d from %s to %s: %w", slot, from.Addr(), to.Addr(), err)
		}
		if err := c.assign(slot, from, to); err != nil {
			return fmt.Errorf("servertest: cannot give slot %d to %s: %w", slot, to.Addr(), err)
		}
	}
	return poll(ctx, "the nodes do not learn of the move", func() error { return c.known(slot, to) })
}

// migrate opens the slot on both sides and sends its keys over. While it is open the old owner
// makes no new keys in it.
func migrate(ctx context.Context, slot int, from, to *Server) error {
	fromID, err := from.Do("CLUSTER", "MYID")
	if err != nil {
		return err
	}
	toID, err := to.Do("CLUSTER", "MYID")
	if err != nil {
		return err
	}
	number := strconv.Itoa(slot)
	// The new owner first: the old one sends clients over as soon as it knows.
	if _, err := to.Do("CLUSTER", "SETSLOT", number, "IMPORTING", fromID); err != nil {
		return err
	}
	if _, err := from.Do("CLUSTER", "SETSLOT", number, "MIGRATING", toID); err != nil {
		return err
	}
	for ctx.Err() == nil {
		keys, err := from.ask("CLUSTER", "GETKEYSINSLOT", number, "100")
		if err != nil || len(keys.list) == 0 {
			return err
		}
		migrate := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.port), "", "0", "5000", "KEYS"}
		if _, err := from.Do(append(migrate, keys.texts()...)...); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// assign closes the slot: at its new owner first, so that at no moment nobody serves it, then at
// the old one, then at those who would else learn it by gossip.
func (c *Cluster) assign(slot int, from, to *Server) error {
	toID, err := to.Do("CLUSTER", "MYID")
	if err != nil {
		return err
	}
	nodes, err := to.view()
	if err != nil {
		return err
	}
	order := []*Server{to, from}
	for _, n := range nodes {
		if i := c.index(n); i >= 0 && n.master && c.Nodes[i] != to && c.Nodes[i] != from && c.Nodes[i].up() {
			order = append(order, c.Nodes[i])
		}
	}
	for _, s := range order {
		if _, err := s.Do("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", toID); err != nil {
			return err
		}
	}
	return nil
}

// known returns an error until every node that is up names the owner of the slot.
func (c *Cluster) known(slot int, owner *Server) error {
	var missing error
	for _, s := range c.Nodes {
		if !s.up() {
			continue
		}
		nodes, err := s.view()
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if n.owns(slot) && n.port != owner.port {
				missing = errors.Join(missing, fmt.Errorf("the node at %s says that slot %d is at port %d", s.Addr(), slot, n.port))
			}
		}
	}
	return missing
}
