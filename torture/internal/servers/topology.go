package servers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The topologies of servers, as package torture documents them.
const (
	OneRedis          = "redis"
	Redisson          = "redisson"
	Sentinel          = "sentinel"
	Cluster           = "cluster"
	Redlock           = "redlock"
	Postgres          = "postgres"
	PostgresSync      = "postgres-sync"
	PostgresAsync     = "postgres-async"
	PostgresPooler    = "postgres-pooler"
	Etcd              = "etcd"
	MariaDB           = "mariadb"
	ZooKeeper         = "zookeeper"
	ZooKeeperEnsemble = "zookeeper-ensemble"
	Memcached         = "memcached"
	ShedPostgres      = "shedlock-postgres"
	ShedMariaDB       = "shedlock-mariadb"
)

// The faults, as package torture documents them.
const (
	FaultLink      = "link"
	FaultPause     = "pause"
	FaultRestart   = "restart"
	FaultEvict     = "evict"
	FaultFailover  = "failover"
	FaultStale     = "stale"
	FaultForget    = "forget"
	FaultOutage    = "outage"
	FaultClock     = "clock"
	FaultMajority  = "majority"
	FaultBlank     = "blank"
	FaultTerminate = "terminate"
	FaultExhaust   = "exhaust"
	FaultRolling   = "rolling"
)

// topology says what can be done to servers, and what the locks on them then still promise.
type topology struct {
	usual []string            // the faults that are the default
	costs map[string][]string // for each possible fault, the checks that it may fail
	why   map[string]string   // and why
}

var topologies = map[string]topology{
	OneRedis: single,
	Redisson: single,
	Sentinel: withReplicas,
	Cluster:  withReplicas,
	Postgres: {
		usual: []string{FaultLink, FaultPause, FaultRestart, FaultTerminate, FaultExhaust},
		costs: map[string][]string{FaultLink: nil, FaultPause: nil, FaultRestart: nil, FaultTerminate: nil, FaultExhaust: nil},
	},
	MariaDB: {
		usual: []string{FaultLink, FaultPause, FaultRestart, FaultTerminate, FaultExhaust},
		costs: map[string][]string{FaultLink: nil, FaultPause: nil, FaultRestart: nil, FaultTerminate: nil, FaultExhaust: nil},
	},
	ShedPostgres: tokenless,
	ShedMariaDB:  tokenless,
	PostgresSync: {
		usual: []string{FaultLink, FaultFailover, FaultTerminate},
		costs: map[string][]string{FaultLink: nil, FaultFailover: nil, FaultTerminate: nil},
	},
	PostgresAsync: {
		usual: []string{FaultLink, FaultFailover, FaultStale},
		costs: map[string][]string{FaultLink: nil, FaultFailover: {"V3", "V4"}, FaultStale: {"V3", "V4"}},
		why:   map[string]string{FaultFailover: failedOver, FaultStale: failedOver},
	},
	PostgresPooler: {
		usual: []string{FaultLink, FaultTerminate},
		costs: map[string][]string{FaultLink: nil, FaultTerminate: nil},
	},
	Etcd: {
		usual: []string{FaultLink, FaultRestart, FaultRolling},
		costs: map[string][]string{FaultLink: nil, FaultRestart: nil, FaultRolling: nil, FaultPause: {"V3", "V4"}},
		why:   map[string]string{FaultPause: oldLeader},
	},
	ZooKeeper: {
		usual: []string{FaultLink, FaultPause, FaultRestart},
		costs: map[string][]string{FaultLink: nil, FaultPause: nil, FaultRestart: nil},
	},
	ZooKeeperEnsemble: {
		usual: []string{FaultLink, FaultPause, FaultRestart, FaultFailover},
		costs: map[string][]string{FaultLink: nil, FaultPause: nil, FaultRestart: nil, FaultFailover: nil},
	},
	Memcached: {
		usual: []string{FaultLink},
		costs: map[string][]string{FaultLink: nil, FaultPause: {"V3", "V4"}, FaultEvict: {"V3", "V4"}},
		why:   map[string]string{FaultPause: "a server that was stopped counts by its old clock for a moment", FaultEvict: evicting},
	},
	// Exclusion rests on the masters' clocks, the order of tokens does not.
	Redlock: {
		usual: []string{FaultLink, FaultPause, FaultRestart, FaultForget, FaultOutage},
		costs: map[string][]string{
			FaultLink: nil, FaultPause: nil, FaultRestart: nil, FaultForget: nil, FaultOutage: nil, FaultClock: {"V3", "V4"},
			FaultMajority: nil, FaultBlank: nil, FaultRolling: nil,
		},
		why: map[string]string{FaultClock: "a master whose clock jumps forth ends leases before their time"},
	},
}

// single is one Redis that writes down everything.
var single = topology{
	usual: []string{FaultLink, FaultPause, FaultRestart},
	costs: map[string][]string{FaultLink: nil, FaultPause: nil, FaultRestart: nil, FaultEvict: {"V3", "V4"}},
	why:   map[string]string{FaultEvict: evicting},
}

// withReplicas are masters with replicas. Where a replica follows that has not heard the last, it
// lets others in while those that it does not know hold. Pauses are for longer than the others
// wait: the old master is there again when a replica has its place, and for a moment takes itself
// for the master.
var withReplicas = topology{
	usual: []string{FaultLink, FaultFailover, FaultStale},
	costs: map[string][]string{FaultLink: nil, FaultPause: {"V3", "V4"}, FaultFailover: {"V3", "V4"}, FaultStale: {"V3", "V4"}},
	why:   map[string]string{FaultPause: failedOver, FaultFailover: failedOver, FaultStale: failedOver},
}

const evicting = "a server that evicts forgets who holds"

// tokenless is a database without tokens: a holder that anything makes late writes over the next
// one.
var tokenless = topology{
	usual: []string{FaultLink, FaultPause, FaultRestart, FaultTerminate, FaultExhaust},
	costs: map[string][]string{FaultLink: {"V2"}, FaultPause: {"V2"}, FaultRestart: {"V2"}, FaultTerminate: {"V2"}, FaultExhaust: {"V2"}},
	why:   map[string]string{FaultLink: noTokens, FaultPause: noTokens, FaultRestart: noTokens, FaultTerminate: noTokens, FaultExhaust: noTokens},
}

const noTokens = "there are no tokens, so that nothing refuses the late write of a holder that was stopped"

const oldLeader = "a leader that was stopped may end leases, in versions before 3.4.28 and 3.5.10"

const failedOver = "a replica may follow that has not heard of the last leases"

// connected is the topology where locks live with connections: what ends those at the server ends
// locks, and the next one may be let in before their owners hear of it. An owner that is stopped or
// cut off at that moment hears of it at the end of the lease.
func (t topology) connected() topology {
	t.costs, t.why = maps.Clone(t.costs), maps.Clone(t.why)
	if t.why == nil {
		t.why = map[string]string{}
	}
	for _, f := range []string{FaultLink, FaultRestart, FaultTerminate, FaultFailover, FaultStale} {
		if _, ok := t.costs[f]; ok {
			t.costs[f], t.why[f] = []string{"V3", "V4"}, unheard
		}
	}
	return t
}

const unheard = "a connection that ends at the server ends its locks, and its client hears of that later than the next one gets in"

// Topologies returns the names of all topologies.
func Topologies() []string { return slices.Sorted(maps.Keys(topologies)) }

// Faults returns the names of all faults that some topology bears or may suffer.
func Faults() []string {
	all := map[string]bool{}
	for _, t := range topologies {
		for f := range t.costs {
			all[f] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Resolve returns the faults of a run on the topology of that name: those that were asked for, or
// the usual ones.
func Resolve(name string, faults []string) ([]string, error) {
	name, _, _ = strings.Cut(name, "?")
	t, ok := topologies[name]
	if !ok {
		return nil, fmt.Errorf("torture: cannot start %q: want one of %s", name, strings.Join(Topologies(), ", "))
	}
	if len(faults) == 0 {
		return t.usual, nil
	}
	for _, f := range faults {
		if _, ok := t.costs[f]; !ok {
			return nil, fmt.Errorf("torture: no fault %q of %s: want one of %s", f, name, strings.Join(slices.Sorted(maps.Keys(t.costs)), ", "))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(faults))), nil
}

// Price returns the checks that may fail under these faults, with the reason.
func (t topology) Price(faults []string) (checks []string, why string) {
	var reasons []string
	for _, f := range faults {
		checks = append(checks, t.costs[f]...)
		if w := t.why[f]; w != "" && !slices.Contains(reasons, w) {
			reasons = append(reasons, w)
		}
	}
	slices.Sort(checks)
	return slices.Compact(checks), strings.Join(reasons, "; ")
}
