package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// masterName is the name by which the Sentinels know their master.
const masterName = "mymaster"

// Sentinels are a master, its replica and three Sentinels that watch them, tuned to notice a dead
// master after half a second. Failover exchanges Master and Replica; nobody may read the fields
// meanwhile.
type Sentinels struct {
	Master  *Server   // who is master now
	Replica *Server   // the other one; after a Failover it is down until Rejoin
	Nodes   []*Server // the three Sentinels
}

// StartSentinel starts the five and returns when each Sentinel knows the others and the replica,
// and the replica gets whatever is written to the master. The options are those of master and
// replica; the ports are chosen, and where Dir is given each server has a folder in it.
func StartSentinel(ctx context.Context, o Options) (_ *Sentinels, err error) {
	if err := o.several(); err != nil {
		return nil, err
	}
	s := &Sentinels{Nodes: make([]*Server, 3)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Master, err = startIn(ctx, data(""), o, "master"); err != nil {
		return nil, err
	}
	if s.Replica, err = startIn(ctx, data(fmt.Sprintf("replicaof 127.0.0.1 %d\n", s.Master.Port())), o, "replica"); err != nil {
		return nil, err
	}
	if err := together(len(s.Nodes), func(i int) (err error) {
		s.Nodes[i], err = startIn(ctx, sentinel(s.Master.Port(), patienceOf(i)), Options{Dir: o.Dir, Env: o.Env}, "sentinel-"+strconv.Itoa(i+1))
		if err == nil {
			err = s.hasten(i)
		}
		return err
	}); err != nil {
		return nil, err
	}
	if err := poll(ctx, "the Sentinels do not agree", s.ready); err != nil {
		return nil, err
	}
	return s, nil
}

// Sentinel starts a master, a replica and three Sentinels for the test and closes them at its end.
// The arguments are those of master and replica.
func Sentinel(t TB, args ...string) *Sentinels {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Sentinels, error) { return StartSentinel(ctx, Options{Args: args}) })
}

// data is a Redis with a configuration file, in which a Sentinel notes whose replica it is: it
// comes back as what it was.
func data(first string) program {
	return redisWith(func(s *Server) ([]string, error) {
		path, err := s.config(first)
		if err != nil {
			return nil, err
		}
		args, err := redis.args(s)
		return append([]string{path}, args...), err
	})
}

// patienceOf is the silence, in milliseconds, after which a Sentinel takes the master for dead. Two
// of them decide it; the third is slower, so that it stands for no election and gives its vote to
// one of the two. Three that stand at once may each vote for itself, and then nothing happens for
// twice the time of a failover.
func patienceOf(i int) int {
	if i == 2 {
		return 1500
	}
	return 500
}

// sentinel is one Sentinel for the master at the port.
func sentinel(master, patience int) program {
	p := redisWith(func(s *Server) ([]string, error) {
		path, err := s.config(fmt.Sprintf(""+
			"bind 127.0.0.1\nport %d\ndir %q\n"+
			"sentinel monitor %[3]s 127.0.0.1 %[4]d 2\n"+
			"sentinel down-after-milliseconds %[3]s %[5]d\n"+
			"sentinel failover-timeout %[3]s 3000\n", s.port, s.dir, masterName, master, patience))
		return []string{path, "--sentinel"}, err
	})
	p.ready = "Sentinel ID is"
	return p
}

// config returns the path of the server's configuration file, which it writes at the first start:
// from then on it is the server's own.
func (s *Server) config(first string) (string, error) {
	path := filepath.Join(s.dir, "redis.conf")
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(path, []byte(first), 0o600)
	}
	return path, err
}

// hasten shortens the periods, in milliseconds, in which a Sentinel looks and talks. Those it comes
// with are made for networks, and for a machine that never pauses it for two seconds: after such a
// pause it would do nothing for 30. Five times the period of PING is also how old the last word of
// a replica may be that is promoted, and while the master is down a replica is asked once a second,
// whatever INFO-PERIOD says: below 200 no replica may be good enough.
func (s *Sentinels) hasten(i int) error {
	_, err := s.Nodes[i].Do("SENTINEL", "DEBUG",
		"INFO-PERIOD", "200", "PING-PERIOD", "400", "ASK-PERIOD", "100", "PUBLISH-PERIOD", "200",
		"MIN-LINK-RECONNECT-PERIOD", "500", "TILT-TRIGGER", "10000", "TILT-PERIOD", "1000")
	return err
}

// ready returns what is missing for a failover to be possible.
func (s *Sentinels) ready() error {
	if err := s.Master.feeds(s.Replica); err != nil {
		return err
	}
	for _, node := range s.Nodes {
		v, err := node.ask("SENTINEL", "MASTER", masterName)
		if err != nil {
			return err
		}
		m := v.pairs()
		if m["port"] != strconv.Itoa(s.Master.Port()) || m["flags"] != "master" || m["num-other-sentinels"] != "2" {
			return fmt.Errorf("the Sentinel at %s sees the master at %s, flags %q, and %s others", node.Addr(), m["port"], m["flags"], m["num-other-sentinels"])
		}
		if v, err = node.ask("SENTINEL", "REPLICAS", masterName); err != nil {
			return err
		}
		if len(v.list) != 1 {
			return fmt.Errorf("the Sentinel at %s sees %d replicas", node.Addr(), len(v.list))
		}
		r := v.list[0].pairs()
		if r["port"] != strconv.Itoa(s.Replica.Port()) || r["flags"] != "slave" || r["master-link-status"] != "ok" {
			return fmt.Errorf("the Sentinel at %s sees the replica at %s, flags %q, its link %q", node.Addr(), r["port"], r["flags"], r["master-link-status"])
		}
	}
	return nil
}

// URL names all three Sentinels and their master.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + joined(s.Nodes) + "/" + masterName
}

// Failover kills the master and returns when the replica is promoted and every Sentinel says so,
// which takes two to three seconds. What the master had not yet sent to the replica is lost, as in
// earnest. The two have exchanged their fields then.
func (s *Sentinels) Failover(ctx context.Context) error {
	if err := s.Master.Kill(); err != nil {
		return err
	}
	if err := poll(ctx, "the replica is not promoted", s.promoted); err != nil {
		return err
	}
	s.Master, s.Replica = s.Replica, s.Master
	return nil
}

func (s *Sentinels) promoted() error {
	if err := s.Replica.shows("role:master", "INFO", "replication"); err != nil {
		return err
	}
	for _, node := range s.Nodes {
		got, err := node.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		if err != nil {
			return err
		}
		if addr := strings.ReplaceAll(got, "\n", ":"); addr != s.Replica.Addr() {
			return fmt.Errorf("the Sentinel at %s says the master is %s", node.Addr(), addr)
		}
	}
	return nil
}

// Rejoin starts the server that was killed by Failover and returns when it is a replica with its
// copy and every Sentinel knows: then the next Failover can come.
func (s *Sentinels) Rejoin(ctx context.Context) error {
	if err := s.Replica.Restart(ctx); err != nil {
		return err
	}
	return poll(ctx, "the former master does not rejoin", s.ready)
}

// Close kills all five and removes their folders.
func (s *Sentinels) Close() error {
	return closeAll(append([]*Server{s.Master, s.Replica}, s.Nodes...)...)
}
