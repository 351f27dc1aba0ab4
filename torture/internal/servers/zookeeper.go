//go:build linux || darwin

package servers

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// zookeeper is one ZooKeeper, or an ensemble of three.
type zookeeper struct {
	usual
	*servertest.Ensemble
	query string // what the store's URL has besides
}

// startZooKeeper starts it. Members that hear nothing of each other for a second elect another
// leader.
func startZooKeeper(ctx context.Context, name, query string) (kind, error) {
	o := servertest.Options{Args: []string{"maxSessionTimeout=20000", "syncLimit=10"}}
	if name == ZooKeeperEnsemble {
		e, err := servertest.StartEnsemble(ctx, 3, o)
		if err != nil {
			return nil, err
		}
		return &zookeeper{Ensemble: e, query: query}, nil
	}
	s, err := servertest.StartZooKeeper(ctx, o)
	if err != nil {
		return nil, err
	}
	return &zookeeper{Ensemble: &servertest.Ensemble{Members: []*servertest.Server{s}}, query: query}, nil
}

func (z *zookeeper) url() string {
	if z.query != "" {
		return z.URL() + "?" + z.query
	}
	return z.URL()
}

func (z *zookeeper) nodes() []*servertest.Server { return z.Members }
func (z *zookeeper) proxied() []string           { return addrs(z.Members) }
func (z *zookeeper) close() error                { return z.Close() }

// tells is true of leases of a semaphore only.
func (z *zookeeper) tells() bool { return strings.Contains(z.query, "mutex=semaphore") }

// spare is that of a session, which is half as long again, and ends by a tick.
func (z *zookeeper) spare(ttl time.Duration) time.Duration { return ttl/2 + 100*time.Millisecond }

// one returns any member, or the leader.
func (z *zookeeper) one(ctx context.Context, i *Injector, leads bool) (*servertest.Server, error) {
	if leads {
		return z.Leader(ctx)
	}
	return z.Members[i.rand.IntN(len(z.Members))], nil
}

// harm injects one fault at one member. The leader's share of it is as large as that of all others.
func (z *zookeeper) harm(ctx context.Context, i *Injector, fault string) error {
	s, err := z.one(ctx, i, fault == FaultFailover || len(z.Members) > 1 && i.rand.IntN(2) == 0)
	if err != nil {
		return err
	}
	switch fault {
	case FaultPause:
		i.note("the member at %s is stopped", s.Addr())
		if err := s.Pause(); err != nil {
			return err
		}
		monotonic.Pause(i.some(0.5, 3), ctx.Done())
		i.note("the member at %s is continued", s.Addr())
		err = s.Resume()
	case FaultRestart:
		err = i.restart(ctx, s)
	case FaultFailover:
		i.note("the leader at %s is killed", s.Addr())
		if err := s.Kill(); err != nil {
			return err
		}
		if _, err := z.Leader(ctx); err != nil {
			return err
		}
		i.note("another one leads")
		err = s.Restart(ctx)
	default:
		err = fmt.Errorf("torture: no fault %q of a ZooKeeper", fault)
	}
	if err != nil || len(z.Members) == 1 {
		return err
	}
	defer i.note("all members are there again")
	return z.Await(ctx)
}

var nodeCount = regexp.MustCompile(`(?m)^Node count: (\d+)`)

func (z *zookeeper) entries(context.Context) (int, error) {
	text, err := exchange(z.Members[0], "srvr", "")
	return find(nodeCount, []byte(text), err)
}
