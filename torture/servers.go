//go:build linux || darwin

package torture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// servers are what a run started itself, and so may harm.
type servers struct {
	topology
	redis     *servertest.Server // nil on other topologies, as are the others
	sentinels *servertest.Sentinels
	cluster   *servertest.Cluster
	masters   *masters
	postgres  *postgres
	etcd      *servertest.Etcds
	mariadb   *servertest.Server
	zookeeper *zookeeper
	memcached *servertest.Server
	redisson  bool   // the lock is Redisson's
	shedlock  bool   // the lock is in ShedLock's table there
	query     string // what the store's URL has besides
}

// raise starts the servers of a topology, so that those faults can be done to them.
func raise(ctx context.Context, name string, faults []string) (s *servers, err error) {
	name, query, _ := strings.Cut(name, "?")
	s = &servers{topology: topologies[name], query: query}
	if s.ofConnections() {
		s.topology = s.connected()
	}
	ctx, cancel := context.WithTimeout(ctx, comeUp)
	defer cancel()
	switch name {
	case OneRedis, Redisson:
		s.redisson = name == Redisson
		s.redis, err = servertest.Start(ctx, servertest.Options{Args: durable})
	case Sentinel:
		s.sentinels, err = servertest.StartSentinel(ctx, servertest.Options{})
	case Cluster:
		s.cluster, err = servertest.StartCluster(ctx, 3, 1, servertest.Options{})
	case Postgres, PostgresSync, PostgresAsync, PostgresPooler:
		s.postgres, err = raisePostgres(ctx, name)
	case Etcd:
		s.etcd, err = servertest.StartEtcds(ctx, 3, servertest.Options{})
	case MariaDB:
		s.mariadb, err = raiseMariaDB(ctx)
	case ZooKeeper:
		s.zookeeper, err = raiseZooKeeper(ctx, 1)
	case ZooKeeperEnsemble:
		s.zookeeper, err = raiseZooKeeper(ctx, threeMembers)
	case Memcached:
		s.memcached, err = raiseMemcached(ctx)
	case ShedPostgres, ShedMariaDB:
		err = s.raiseShedLock(ctx, name)
	case Redlock:
		s.masters, err = raiseMasters(ctx, faults)
	default:
		err = fmt.Errorf("torture: no topology %q", name)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// durable has a Redis write down whatever it acknowledges before it does: a restart loses nothing.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// url is where the lock is to be had, in its own scheme.
func (s *servers) url() string {
	switch {
	case s.shedlock:
		return "shedlock+" + s.at()
	case s.redisson:
		return strings.Replace(s.at(), "redis:", "redisson:", 1)
	}
	return s.at()
}

func (s *servers) at() string {
	switch {
	case s.sentinels != nil:
		return s.sentinels.URL()
	case s.cluster != nil:
		return s.cluster.URL()
	case s.masters != nil:
		return s.masters.url()
	case s.mariadb != nil && s.query != "":
		return s.mariadb.URL() + "?" + s.query
	case s.mariadb != nil:
		return s.mariadb.URL()
	case s.postgres != nil && s.query != "":
		return s.postgres.url() + "&" + s.query
	case s.postgres != nil:
		return s.postgres.url()
	case s.etcd != nil:
		return s.etcd.URL()
	case s.zookeeper != nil && s.query != "":
		return s.zookeeper.URL() + "?" + s.query
	case s.zookeeper != nil:
		return s.zookeeper.URL()
	case s.memcached != nil:
		return s.memcached.URL()
	}
	return s.redis.URL()
}

// nodes are the servers that keep data.
func (s *servers) nodes() []*servertest.Server {
	switch {
	case s.sentinels != nil:
		return []*servertest.Server{s.sentinels.Master, s.sentinels.Replica}
	case s.cluster != nil:
		return s.cluster.Nodes
	case s.masters != nil:
		return s.masters.nodes
	case s.postgres != nil:
		return s.postgres.nodes()
	case s.etcd != nil:
		return s.etcd.Members
	case s.mariadb != nil:
		return []*servertest.Server{s.mariadb}
	case s.zookeeper != nil:
		return s.zookeeper.Members
	case s.memcached != nil:
		return []*servertest.Server{s.memcached}
	}
	return []*servertest.Server{s.redis}
}

// wirable are the addresses that workers can reach over proxies: none where servers tell clients of one another.
func (s *servers) wirable() []string {
	if s.sentinels != nil || s.cluster != nil {
		return nil
	}
	if s.postgres != nil && s.postgres.pooler != nil {
		return []string{s.postgres.pooler.Addr()}
	}
	var addrs []string
	for _, n := range s.nodes() {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// spare is how much longer than a lease whatever stands for it is at the servers, since they count coarsely: an item of a memcached and
// a connection of a MariaDB by whole seconds, and a session of a ZooKeeper is half as long again, and ends by a tick.
func (s *servers) spare(ttl time.Duration) time.Duration {
	switch {
	case s.memcached != nil:
		return 2 * time.Second
	case s.mariadb != nil && s.ofConnections():
		return (ttl + time.Second - 1).Truncate(time.Second) - ttl + 100*time.Millisecond
	case s.zookeeper != nil:
		return ttl/2 + 100*time.Millisecond
	}
	return 0
}

// tells reports whether the store says when it granted what is held. An etcd and a memcached do not, nor a ZooKeeper but of a lease of
// a semaphore, nor a database of the locks of its connections. Several masters are not asked: see dated.
func (s *servers) tells() bool {
	switch {
	case s.etcd != nil, s.memcached != nil, s.masters != nil:
		return false
	case s.zookeeper != nil:
		return strings.Contains(s.query, "mutex=semaphore")
	}
	return !s.ofConnections()
}

// ofConnections reports whether locks live with connections.
func (s *servers) ofConnections() bool {
	return strings.Contains(s.query, "technique=session") || strings.Contains(s.query, "technique=rowlock")
}

// host is url without the scheme.
func (s *servers) host() string {
	_, host, _ := strings.Cut(s.url(), "://")
	return host
}

func (s *servers) close() error {
	switch {
	case s.sentinels != nil:
		return s.sentinels.Close()
	case s.cluster != nil:
		return s.cluster.Close()
	case s.masters != nil:
		return s.masters.close()
	case s.postgres != nil:
		return s.postgres.close()
	case s.etcd != nil:
		return s.etcd.Close()
	case s.mariadb != nil:
		return s.mariadb.Close()
	case s.zookeeper != nil:
		return s.zookeeper.Close()
	case s.memcached != nil:
		return s.memcached.Close()
	}
	return s.redis.Close()
}

// squeeze makes a server drop every key that has a TTL, as it does when its memory is full and its policy is
// volatile-lru. The four commands arrive in one piece and are carried out in one go, so nobody else is turned away for want
// of memory.
func squeeze(s *servertest.Server) error {
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	commands := "CONFIG SET maxmemory-policy volatile-lru\r\nCONFIG SET maxmemory 1\r\nPING\r\nCONFIG SET maxmemory 0\r\n"
	if _, err := conn.Write([]byte(commands)); err != nil {
		return err
	}
	replies := bufio.NewReader(conn)
	var errs []error
	for range strings.Count(commands, "\n") {
		line, err := replies.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "-") {
			errs = append(errs, errors.New(strings.TrimSpace(line)))
		}
	}
	return errors.Join(errs...)
}
