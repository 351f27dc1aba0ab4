//go:build linux || darwin

package torture

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/internal/servertest"
)

// zookeeper is one ZooKeeper, or an ensemble of three.
type zookeeper struct{ servertest.Ensemble }

const threeMembers = 3

// raiseZooKeeper starts it. Members that hear nothing of each other for a second elect another leader.
func raiseZooKeeper(ctx context.Context, members int) (*zookeeper, error) {
	o := servertest.Options{Args: []string{"maxSessionTimeout=20000", "syncLimit=10"}}
	if members > 1 {
		e, err := servertest.StartEnsemble(ctx, members, o)
		if err != nil {
			return nil, err
		}
		return &zookeeper{*e}, nil
	}
	s, err := servertest.StartZooKeeper(ctx, o)
	if err != nil {
		return nil, err
	}
	return &zookeeper{servertest.Ensemble{Members: []*servertest.Server{s}}}, nil
}

// one returns any member, or the leader.
func (h *havoc) one(ctx context.Context, leads bool) (*servertest.Server, error) {
	z := h.servers.zookeeper
	if leads {
		return z.Leader(ctx)
	}
	return z.Members[h.rand.IntN(len(z.Members))], nil
}

// harmZooKeeper does one thing to one member. The leader's share of it is as large as that of all others.
func (h *havoc) harmZooKeeper(ctx context.Context, kind string) error {
	z := h.servers.zookeeper
	s, err := h.one(ctx, kind == FaultFailover || len(z.Members) > 1 && h.rand.IntN(2) == 0)
	if err != nil {
		return err
	}
	switch kind {
	case FaultPause:
		h.note("the member at %s is stopped", s.Addr())
		if err := s.Pause(); err != nil {
			return err
		}
		pause(h.some(0.5, 3), ctx.Done())
		h.note("the member at %s is continued", s.Addr())
		err = s.Resume()
	case FaultRestart:
		err = h.restart(ctx, s)
	case FaultFailover:
		h.note("the leader at %s is killed", s.Addr())
		if err := s.Kill(); err != nil {
			return err
		}
		if _, err := z.Leader(ctx); err != nil {
			return err
		}
		h.note("another one leads")
		err = s.Restart(ctx)
	default:
		err = fmt.Errorf("torture: no fault %q of a ZooKeeper", kind)
	}
	if err != nil || len(z.Members) == 1 {
		return err
	}
	defer h.note("all members are there again")
	return z.Await(ctx)
}
