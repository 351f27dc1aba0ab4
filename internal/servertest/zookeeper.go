package servertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StartZooKeeper starts one ZooKeeper and returns when it serves sessions. Arguments that begin with "-" are for Java, such as
// "-Dzookeeper.forceSync=yes"; the others are lines of its configuration, such as "maxClientCnxns=5". They win over the defaults.
//
// Its tick is 100 ms, so that a session may be as short as 200 ms, and a minute long. It does not call fsync unless told to: a process that is
// killed loses nothing by that, only a machine would.
func StartZooKeeper(ctx context.Context, o Options) (*Server, error) {
	if o.TLS {
		return nil, errors.New("servertest: only a single Redis speaks TLS: leave Options.TLS unset")
	}
	return start(ctx, zookeeper("Using checkIntervalMs"), o) // which a lone server begins to do when it serves
}

// zookeeperJar is where Debian keeps it. It names what it needs but for a part of Netty, by which it speaks TLS, and where to log to.
const (
	zookeeperJar = "/usr/share/java/zookeeper.jar"
	zookeeperToo = ":/usr/share/java/netty-codec.jar:/usr/share/java/slf4j-simple.jar"
)

func zookeeper(ready string, group ...string) program {
	return program{
		command: "java", ready: ready,
		args: func(s *Server) ([]string, error) {
			if _, err := os.Stat(zookeeperJar); err != nil {
				return nil, fmt.Errorf("servertest: ZooKeeper is needed to run this: install it (on Debian: apt-get install zookeeper): %w", err)
			}
			config := slices.Concat([]string{
				"dataDir=" + s.dir, "clientPortAddress=127.0.0.1", "clientPort=" + strconv.Itoa(s.port), "tickTime=100", "maxSessionTimeout=60000",
				"maxClientCnxns=0", "admin.enableServer=false", "initLimit=100", "syncLimit=50",
			}, group)
			java := []string{
				"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", // half a second to start instead of a whole one
				"-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64", "-Djava.net.preferIPv4Stack=true",
				// Else members that have missed each other's votes say them again after twice the time each time, up to a minute.
				"-Dzookeeper.fastleader.maxNotificationInterval=1000",
			}
			for _, arg := range s.o.Args {
				if strings.HasPrefix(arg, "-") {
					java = append(java, arg)
				} else {
					config = append(config, arg)
				}
			}
			file := filepath.Join(s.dir, "zoo.cfg")
			if err := os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
				return nil, fmt.Errorf("servertest: a file for ZooKeeper: %w", err)
			}
			return append(java, "-cp", zookeeperJar+zookeeperToo, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file), nil
		},
		url: func(s *Server) string { return "zk://" + s.Addr() },
	}
}

// LoseData removes what a ZooKeeper that was ended has on disk, so that it comes back empty.
func (s *Server) LoseData() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.process.over() {
		return fmt.Errorf("servertest: the server at %s runs: Kill it before it loses its data", s.Addr())
	}
	return os.RemoveAll(filepath.Join(s.dir, "version-2"))
}

// Serves asks a ZooKeeper what it is: "standalone", "leader" or "follower". A member without a majority, and a server that is down or
// paused, is an error.
func (s *Server) Serves() (mode string, err error) {
	answer, err := s.fourLetters("srvr")
	if err != nil {
		return "", err
	}
	if _, mode, ok := strings.Cut(answer, "Mode: "); ok {
		mode, _, _ = strings.Cut(mode, "\n")
		return mode, nil
	}
	return "", fmt.Errorf("servertest: the server at %s does not serve: %s", s.Addr(), strings.TrimSpace(answer))
}

// fourLetters asks by the protocol for operators, where a connection is one question.
func (s *Server) fourLetters(word string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return "", fmt.Errorf("servertest: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", fmt.Errorf("servertest: %w", err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		return "", fmt.Errorf("servertest: the server at %s does not answer %s: %w", s.Addr(), word, err)
	}
	return string(b), nil
}

// An Ensemble is a ZooKeeper of several servers, which serves while a majority of them is up.
type Ensemble struct {
	Members []*Server
}

// StartEnsemble starts that many servers and returns when one leads and the others follow. The options are those of every member, as of StartZooKeeper; the
// ports are chosen, and where Dir is given each member has a folder in it. A member that is restarted is up when it listens: see Await.
func StartEnsemble(ctx context.Context, members int, o Options) (*Ensemble, error) {
	return StartEnsembleOver(ctx, members, o, nil)
}

// StartEnsembleOver is StartEnsemble with members that follow each other over proxies: between says at which address the member from, of 0 and up, finds the port at addr by
// which others follow the member to. Their votes go straight.
func StartEnsembleOver(ctx context.Context, members int, o Options, between func(from, to int, addr string) (string, error)) (*Ensemble, error) {
	if members < 1 {
		return nil, fmt.Errorf("servertest: an ensemble has at least one member, not %d", members)
	}
	if err := o.several(); err != nil {
		return nil, err
	}
	const attempts = 5 // as in start, but a member's ports are in everybody's configuration, so all are chosen anew
	for i := 1; ; i++ {
		e, err := startEnsemble(ctx, members, o, between)
		if err == nil || i == attempts || !errors.Is(err, errPortTaken) {
			return e, err
		}
	}
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
			_, _ = e.Members[i].keep(ports[3*i+1]), e.Members[i].keep(ports[3*i+2]) // on the first only a leader listens
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
	addrs := make([]string, len(e.Members))
	for i, s := range e.Members {
		addrs[i] = s.Addr()
	}
	return "zk://" + strings.Join(addrs, ",")
}

// Close kills all members and removes their folders.
func (e *Ensemble) Close() error { return closeAll(e.Members...) }
