//go:build linux || darwin

// Package servers starts the servers that a run tortures a store on, injects faults into them, and
// counts what they keep. What a topology is, which faults it bears and what these may cost is one
// table; what differs between the servers of one topology and those of another is a kind.
package servers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// Servers are what a run started itself, and so may harm.
type Servers struct {
	topology
	kind kind
}

// Start starts the servers of a topology, so that those faults can be injected. What follows a ? in
// the name goes into the URL of the store.
func Start(ctx context.Context, name string, faults []string) (*Servers, error) {
	name, query, _ := strings.Cut(name, "?")
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	k, err := start(ctx, name, query, faults)
	if err != nil {
		return nil, err
	}
	s := &Servers{topologies[name], k}
	if ofConnections(query) {
		s.topology = s.connected()
	}
	return s, nil
}

func start(ctx context.Context, name, query string, faults []string) (kind, error) {
	switch name {
	case OneRedis, Redisson:
		return startOneRedis(ctx, name == Redisson)
	case Sentinel:
		return startSentinel(ctx)
	case Cluster:
		return startCluster(ctx)
	case Redlock:
		return startMasters(ctx, faults)
	case Postgres, PostgresSync, PostgresAsync, PostgresPooler, ShedPostgres:
		return startPostgres(ctx, name, query)
	case MariaDB, ShedMariaDB:
		return startMariaDB(ctx, name, query)
	case Etcd:
		return startEtcd(ctx)
	case ZooKeeper, ZooKeeperEnsemble:
		return startZooKeeper(ctx, name, query)
	case Memcached:
		return startMemcached(ctx)
	}
	return nil, fmt.Errorf("torture: no topology %q", name)
}

// Close stops the servers.
func (s *Servers) Close() error { return s.kind.close() }

// URL is that of the store on the servers, in its own scheme.
func (s *Servers) URL() string { return s.kind.url() }

// Host is URL without the scheme.
func (s *Servers) Host() string {
	_, host, _ := strings.Cut(s.URL(), "://")
	return host
}

// BehindPooler is the URL of the PostgreSQL behind a pooler.
func (s *Servers) BehindPooler() string { return s.kind.(*postgres).primary.URL() }

// Proxied returns the addresses that workers can reach over proxies: none where servers tell
// clients of one another.
func (s *Servers) Proxied() []string { return s.kind.proxied() }

// Spare returns how much longer than a lease of ttl its record is at the servers, where they count
// coarsely.
func (s *Servers) Spare(ttl time.Duration) time.Duration { return s.kind.spare(ttl) }

// Tells reports whether the store says when it granted what is held.
func (s *Servers) Tells() bool { return s.kind.tells() }

// Independent reports whether the servers are masters that know nothing of each other.
func (s *Servers) Independent() bool {
	_, ok := s.kind.(*masters)
	return ok
}

// SetMaxTTL sets the longest TTL of leases on independent masters.
func (s *Servers) SetMaxTTL(ttl time.Duration) {
	if m, ok := s.kind.(*masters); ok {
		m.setMaxTTL(ttl)
	}
}

// UsedBy says by which locks independent masters are used: those of a scheme.
func (s *Servers) UsedBy(scheme string) {
	if m, ok := s.kind.(*masters); ok {
		m.usedBy(scheme)
	}
}

// Round returns how long a round with these faults is at least, 0 for any length.
func (s *Servers) Round(faults []string) time.Duration {
	for _, f := range faults {
		if s.kind.lasts(f) > 0 {
			return LongRound
		}
	}
	return 0
}

// Injector returns what injects faults into the servers. Times are parts of ttl.
func (s *Servers) Injector(faults []string, seed uint64, ttl time.Duration) *Injector {
	return &Injector{target: s.kind, kinds: faults, rand: rand.New(rand.NewPCG(seed, 1)), ttl: ttl, Count: map[string]int{}}
}

// CutReplica makes the replica of a master hear nothing from it until the next stale failover.
func (s *Servers) CutReplica(i *Injector) error { return s.kind.(*replicated).cut(i) }

// Count returns what the servers have. Connections are counted by the system, and only on Linux,
// where servers are not asked.
func (s *Servers) Count(ctx context.Context) (c Census, err error) {
	if r, ok := s.kind.(*replicated); ok {
		c.Connections, err = r.connections()
	} else {
		c.Connections, err = established(s.Proxied())
	}
	if err == nil {
		c.Entries, err = s.kind.entries(ctx)
	}
	return c, err
}

// Least returns the least of several counts: what was just closed may be there for a moment.
func (s *Servers) Least(ctx context.Context) (Census, error) {
	least := Census{Connections: math.MaxInt, Entries: math.MaxInt}
	for range 10 {
		c, err := s.Count(ctx)
		if err != nil {
			return c, err
		}
		least.Connections, least.Entries = min(c.Connections, least.Connections), min(c.Entries, least.Entries)
		monotonic.Pause(10*time.Millisecond, ctx.Done())
	}
	return least, ctx.Err()
}

// Unexpected describes what else than counters a few keys of each Redis are, and what is in them:
// one of them is what was not to stay.
func (s *Servers) Unexpected() string {
	switch s.kind.(type) {
	case *oneRedis, *replicated, *masters:
	default:
		return ""
	}
	var b strings.Builder
	for _, node := range s.kind.nodes() {
		text, err := node.Do("EVAL", besideCounters, "0")
		if err != nil {
			text = err.Error()
		}
		if text != "" {
			fmt.Fprintf(&b, "; at %s %s", node.Addr(), text)
		}
	}
	return b.String()
}
