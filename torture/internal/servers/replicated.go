//go:build linux || darwin

package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// replicated are Redis masters with replicas: one under three Sentinels, or a Cluster.
type replicated struct {
	usual
	sentinels *servertest.Sentinels // nil in a Cluster
	cluster   *servertest.Cluster
	cutOff    *pair // whose replica hears nothing from its master; nil when there is none
}

// pair is a master and its replica.
type pair struct{ master, replica *servertest.Server }

func startSentinel(ctx context.Context) (kind, error) {
	s, err := servertest.StartSentinel(ctx, servertest.Options{})
	if err != nil {
		return nil, err
	}
	return &replicated{sentinels: s}, nil
}

func startCluster(ctx context.Context) (kind, error) {
	c, err := servertest.StartCluster(ctx, 3, 1, servertest.Options{})
	if err != nil {
		return nil, err
	}
	return &replicated{cluster: c}, nil
}

func (r *replicated) url() string {
	if r.sentinels != nil {
		return r.sentinels.URL()
	}
	return r.cluster.URL()
}

func (r *replicated) close() error {
	if r.sentinels != nil {
		return r.sentinels.Close()
	}
	return r.cluster.Close()
}

func (r *replicated) nodes() []*servertest.Server {
	if r.sentinels != nil {
		return []*servertest.Server{r.sentinels.Master, r.sentinels.Replica}
	}
	return r.cluster.Nodes
}

func (r *replicated) proxied() []string { return nil }

func (r *replicated) entries(context.Context) (n int, err error) {
	for _, node := range r.nodes() {
		k, err := keys(node)
		if err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// connections asks the servers, which are clients of each other at the ports that clients use.
func (r *replicated) connections() (n int, err error) {
	for _, node := range r.nodes() {
		text, err := node.Do("CLIENT", "LIST", "TYPE", "normal")
		if err != nil {
			return 0, err
		}
		n += strings.Count(text, "id=") - strings.Count(text, " name=sentinel-") - 1 // which asks
	}
	return n, nil
}

func (r *replicated) harm(ctx context.Context, i *Injector, fault string) error {
	switch fault {
	case FaultPause:
		// The old master is there again when a replica has its place, and until it hears of that
		// there are two.
		return r.failover(ctx, i, false, "is stopped", (*servertest.Server).Pause, (*servertest.Server).Resume)
	case FaultFailover, FaultStale:
		return r.failover(ctx, i, fault == FaultStale, "is killed", (*servertest.Server).Kill, func(s *servertest.Server) error {
			return s.Restart(ctx)
		})
	}
	return fmt.Errorf("torture: no fault %q of masters with replicas", fault)
}

// failover takes a master away by down and, when a replica has its place, brings it back by up, as
// a replica. Where it is stale the replica heard nothing for a while before.
func (r *replicated) failover(ctx context.Context, i *Injector, stale bool, how string, down, up func(*servertest.Server) error) error {
	var p pair
	var err error
	if stale {
		if err := r.cut(i); err != nil {
			return err
		}
		defer r.reconnect()
		p = *r.cutOff
		monotonic.Pause(time.Duration((0.5+i.rand.Float64()/2)*float64(time.Second)), ctx.Done())
	} else if p, err = r.pick(i); err != nil {
		return err
	}
	i.note("the master at %s %s", p.master.Addr(), how)
	if err := down(p.master); err != nil {
		return err
	}
	if s := r.sentinels; stale && s != nil {
		// By hand: the three may take many times longer to agree, and leases do not last for that.
		// One that does not know the replica well enough yet refuses.
		if err := until(ctx, func() error {
			_, err := s.Nodes[0].Do("SENTINEL", "FAILOVER", "mymaster")
			if err != nil && r.promoted(p.replica) == nil {
				return nil
			}
			return err
		}); err != nil {
			return errors.Join(err, up(p.master))
		}
	}
	if err := until(ctx, func() error { return r.promoted(p.replica) }); err != nil {
		return errors.Join(err, up(p.master))
	}
	i.note("the replica at %s is master", p.replica.Addr())
	if err := up(p.master); err != nil {
		return err
	}
	i.note("the former master at %s is there again", p.master.Addr())
	return follows(ctx, p.master)
}

// cut makes a master refuse its replica, as one that does not know the password, until reconnect,
// unless one is refused already. Neither clients nor Sentinels notice.
func (r *replicated) cut(i *Injector) error {
	if r.cutOff != nil {
		return nil
	}
	p, err := r.pick(i)
	if err != nil {
		return err
	}
	if _, err := p.replica.Do("CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing"); err != nil {
		return err
	}
	r.cutOff = &p
	_, err = p.master.Do("CLIENT", "KILL", "TYPE", "replica")
	i.note("the replica at %s hears nothing any more", p.replica.Addr())
	return err
}

func (r *replicated) reconnect() {
	replica := r.cutOff.replica
	r.cutOff = nil
	_, _ = replica.Do("CONFIG", "SET", "masteruser", "", "masterauth", "")
	_, _ = replica.Do("CONFIG", "REWRITE") // a Sentinel may have had it written down
}

// promoted returns an error until the replica is master and all Sentinels say so.
func (r *replicated) promoted(replica *servertest.Server) error {
	text, err := replica.Do("INFO", "replication")
	if err != nil {
		return err
	}
	if !strings.Contains(text, "role:master") {
		return fmt.Errorf("the replica at %s is no master:\n%s", replica.Addr(), text)
	}
	if r.sentinels == nil {
		return nil
	}
	for _, n := range r.sentinels.Nodes {
		addr, err := n.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")
		if err != nil {
			return err
		}
		if addr = strings.ReplaceAll(addr, "\n", ":"); addr != replica.Addr() {
			return fmt.Errorf("a Sentinel says that the master is at %s, not at %s", addr, replica.Addr())
		}
	}
	return nil
}

// pick draws a master that has a replica.
func (r *replicated) pick(i *Injector) (pair, error) {
	nodes := r.nodes()
	for _, k := range i.rand.Perm(len(nodes)) {
		text, err := nodes[k].Do("INFO", "replication")
		if err != nil {
			return pair{}, err
		}
		if !strings.Contains(text, "role:master") {
			continue
		}
		for _, n := range nodes {
			if strings.Contains(text, fmt.Sprintf("port=%d,state=online", n.Port())) {
				return pair{nodes[k], n}, nil
			}
		}
	}
	return pair{}, errors.New("no master has a replica")
}

// follows waits until a server is a replica that has its copy.
func follows(ctx context.Context, s *servertest.Server) error {
	return until(ctx, func() error {
		text, err := s.Do("INFO", "replication")
		if err == nil && (!strings.Contains(text, "role:slave") || !strings.Contains(text, "master_link_status:up")) {
			err = fmt.Errorf("the server at %s is no replica with a link to its master:\n%s", s.Addr(), text)
		}
		return err
	})
}
