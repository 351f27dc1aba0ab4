package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// An Ensemble is a ZooKeeper of several servers, which serves while a majority of them is up.
type Ensemble struct {
	Members []*Server
}

// StartEnsemble starts that many servers and returns when one leads and the others follow. The
// options are those of every member, as of StartZooKeeper; the ports are chosen, and where Dir is
// given each member has a folder in it. A member that is restarted is up when it listens: see
// Await.
func StartEnsemble(ctx context.Context, members int, o Options) (*Ensemble, error) {
	return StartEnsembleOver(ctx, members, o, nil)
}

// StartEnsembleOver is StartEnsemble with members that follow each other over proxies: between says
// at which address the member from, of 0 and up, finds the port at addr by which others follow the
// member to. Their votes go straight.
func StartEnsembleOver(ctx context.Context, members int, o Options, between func(from, to int, addr string) (string, error)) (*Ensemble, error) {
	if members < 1 {
		return nil, fmt.Errorf("servertest: an ensemble has at least one member, not %d", members)
	}
	if err := o.several(); err != nil {
		return nil, err
	}
	// A member's ports are in the configuration of all, so that all are chosen anew.
	return retry(func() (*Ensemble, error) { return startEnsemble(ctx, members, o, between) })
}

// ZooKeeperEnsemble starts several for the test and closes them at its end. The arguments are those
// of every member.
func ZooKeeperEnsemble(t TB, members int, args ...string) *Ensemble {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Ensemble, error) {
		return StartEnsemble(ctx, members, Options{Args: args})
	})
}

// ZooKeeperEnsembleOver starts several, as StartEnsembleOver does, and closes them at the test's
// end. The arguments are those of every member.
func ZooKeeperEnsembleOver(t TB, members int, between func(from, to int, addr string) (string, error), args ...string) *Ensemble {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Ensemble, error) {
		return StartEnsembleOver(ctx, members, Options{Args: args}, between)
	})
}

func startEnsemble(ctx context.Context, members int, o Options, between func(from, to int, addr string) (string, error)) (_ *Ensemble, err error) {
	e := &Ensemble{Members: make([]*Server, members)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	ports := make([]int, 3*members) // for clients, for the leader, for elections
	for i := range ports {
		if ports[i], err = FreePort(); err != nil {
			return nil, err
		}
	}
	groups := make([][]string, members)
	for from := range members {
		groups[from] = []string{"standaloneEnabled=false"}
		for to := range members {
			addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[3*to+1]))
			if between != nil && from != to {
				if addr, err = between(from, to, addr); err != nil {
					return nil, err
				}
			}
			groups[from] = append(groups[from], fmt.Sprintf("server.%d=%s:%d", to+1, addr, ports[3*to+2]))
		}
	}
	if err := together(members, func(i int) (err error) {
		p := zookeeper("binding to port", groups[i]...)
		args := p.args
		p.args = func(s *Server) ([]string, error) {
			if err := os.WriteFile(filepath.Join(s.dir, "myid"), []byte(strconv.Itoa(i+1)), 0o600); err != nil {
				return nil, err
			}
			return args(s)
		}
		o := o
		o.Port = ports[3*i]
		if e.Members[i], err = startIn(ctx, p, o, "member-"+strconv.Itoa(i+1)); err == nil {
			_, _ = e.Members[i].ports.Keep(ports[3*i+1]), e.Members[i].ports.Keep(ports[3*i+2]) // on the first only a leader listens
		}
		return err
	}); err != nil {
		return nil, err
	}
	return e, e.Await(ctx)
}

// Await returns when all members that run and are not paused serve, and one of them leads.
func (e *Ensemble) Await(ctx context.Context) error {
	return poll(ctx, "the ensemble does not come up", func() error {
		_, err := e.leader()
		return err
	})
}

// Leader returns the member that leads, after all that are up serve.
func (e *Ensemble) Leader(ctx context.Context) (leader *Server, err error) {
	return leader, poll(ctx, "the ensemble has no leader", func() error {
		leader, err = e.leader()
		return err
	})
}

func (e *Ensemble) leader() (leader *Server, _ error) {
	for _, s := range e.Members {
		if !s.up() {
			continue
		}
		switch mode, err := s.Serves(); {
		case err != nil:
			return nil, err
		case mode == "leader":
			leader = s
		}
	}
	if leader == nil {
		return nil, errors.New("nobody leads")
	}
	return leader, nil
}

// URL names all members.
func (e *Ensemble) URL() string {
	return "zk://" + joined(e.Members)
}

// Close kills all members and removes their folders.
func (e *Ensemble) Close() error { return closeAll(e.Members...) }
