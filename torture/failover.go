//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// failover kills a master and returns when everything is whole again: a replica in its place, and itself a replica.
func (h *havoc) failover(ctx context.Context, deaf bool) error {
	return h.depose(ctx, deaf, "is killed", func(s *servertest.Server) error { return s.Kill() }, func(s *servertest.Server) error {
		return s.Restart(ctx)
	})
}

// split stops a master until a replica is master, and continues it: then there are two until the old one hears of it.
func (h *havoc) split(ctx context.Context) error {
	return h.depose(ctx, false, "is stopped", (*servertest.Server).Pause, (*servertest.Server).Resume)
}

// depose takes a master away by down and, when a replica has its place, brings it back by up.
func (h *havoc) depose(ctx context.Context, deaf bool, how string, down, up func(*servertest.Server) error) error {
	var master, replica *servertest.Server
	var err error
	if deaf {
		if err := h.mute(); err != nil {
			return err
		}
		defer h.unmute()
		master, replica = h.muted.master, h.muted.replica
		pause(time.Duration((0.5+h.rand.Float64()/2)*float64(time.Second)), ctx.Done())
	} else if master, replica, err = h.pick(); err != nil {
		return err
	}
	h.note("the master at %s %s", master.Addr(), how)
	if err := down(master); err != nil {
		return err
	}
	if s := h.servers.sentinels; deaf && s != nil {
		// By hand: the three may take many times longer to agree, and leases do not last for that.
		// One that does not know the replica well enough yet refuses.
		if err := until(ctx, func() error {
			_, err := s.Nodes[0].Do("SENTINEL", "FAILOVER", "mymaster")
			if err != nil && h.promoted(replica) == nil {
				return nil
			}
			return err
		}); err != nil {
			return errors.Join(err, up(master))
		}
	}
	if err := until(ctx, func() error { return h.promoted(replica) }); err != nil {
		return errors.Join(err, up(master))
	}
	h.note("the replica at %s is master", replica.Addr())
	if err := up(master); err != nil {
		return err
	}
	h.note("the former master at %s is there again", master.Addr())
	return follows(ctx, master)
}

// muted is a master whose replica hears nothing from it.
type muted struct{ master, replica *servertest.Server }

// mute has a replica refused by its master, as one that does not know the password, until unmute, unless one is already.
// Neither clients nor those who watch over the two notice.
func (h *havoc) mute() error {
	if h.muted != nil {
		return nil
	}
	master, replica, err := h.pick()
	if err != nil {
		return err
	}
	if _, err := replica.Do("CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing"); err != nil {
		return err
	}
	h.muted = &muted{master, replica}
	_, err = master.Do("CLIENT", "KILL", "TYPE", "replica")
	h.note("the replica at %s hears nothing any more", replica.Addr())
	return err
}

func (h *havoc) unmute() {
	replica := h.muted.replica
	h.muted = nil
	_, _ = replica.Do("CONFIG", "SET", "masteruser", "", "masterauth", "")
	_, _ = replica.Do("CONFIG", "REWRITE") // a Sentinel may have had it written down
}

// promoted returns an error until the replica is master and those who watch over it say so.
func (h *havoc) promoted(replica *servertest.Server) error {
	text, err := replica.Do("INFO", "replication")
	if err != nil {
		return err
	}
	if !strings.Contains(text, "role:master") {
		return fmt.Errorf("the replica at %s is no master:\n%s", replica.Addr(), text)
	}
	s := h.servers.sentinels
	if s == nil {
		return nil
	}
	for _, n := range s.Nodes {
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
func (h *havoc) pick() (master, replica *servertest.Server, err error) {
	nodes := h.servers.nodes()
	for _, i := range h.rand.Perm(len(nodes)) {
		text, err := nodes[i].Do("INFO", "replication")
		if err != nil {
			return nil, nil, err
		}
		if !strings.Contains(text, "role:master") {
			continue
		}
		for _, n := range nodes {
			if strings.Contains(text, fmt.Sprintf("port=%d,state=online", n.Port())) {
				return nodes[i], n, nil
			}
		}
	}
	return nil, nil, errors.New("no master has a replica")
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

// until looks every 20 ms until there is nothing wrong.
func until(ctx context.Context, look func() error) error {
	for {
		err := look()
		if err == nil {
			return nil
		}
		pause(20*time.Millisecond, ctx.Done())
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
