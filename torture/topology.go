package torture

import "github.com/interlock-go/interlock/torture/internal/servers"

// The topologies of servers that a run can start by itself.
const (
	OneRedis = servers.OneRedis
	Redisson = servers.Redisson // one Redis, with Redisson's locks
	Sentinel = servers.Sentinel
	Cluster  = servers.Cluster
	Redlock  = servers.Redlock // five masters that know nothing of each other

	// A PostgreSQL, alone, with a standby that has all that is committed or that follows as it can,
	// and behind a pooler that shares connections. What follows a ? goes into the URL of the store:
	// "postgres?technique=session".
	Postgres       = servers.Postgres
	PostgresSync   = servers.PostgresSync
	PostgresAsync  = servers.PostgresAsync
	PostgresPooler = servers.PostgresPooler

	Etcd    = servers.Etcd    // three members
	MariaDB = servers.MariaDB // alone; what follows a ? goes into the URL, too

	// A ZooKeeper, alone and as an ensemble of three. What follows a ? goes into the URL of the
	// store.
	ZooKeeper         = servers.ZooKeeper
	ZooKeeperEnsemble = servers.ZooKeeperEnsemble

	Memcached = servers.Memcached // alone

	// ShedLock's table on either of them.
	ShedPostgres = servers.ShedPostgres
	ShedMariaDB  = servers.ShedMariaDB
)

// The faults of servers, and of the way to them.
const (
	FaultLink    = servers.FaultLink    // the links of workers hold back what is sent, or are reset
	FaultPause   = servers.FaultPause   // a server is stopped for a while
	FaultRestart = servers.FaultRestart // a server dies or ends, and starts again with its data
	FaultEvict   = servers.FaultEvict   // a server drops every key that has a TTL

	// A master is killed, and when a replica has its place started again as its replica: after a
	// while in which the replica heard nothing from it where the failover is stale.
	FaultFailover = servers.FaultFailover
	FaultStale    = servers.FaultStale

	// Of several masters that know nothing of each other one or two come back without what they
	// knew last, three are stopped at once, or two have their clocks set an hour forth or back for
	// a while.
	FaultForget = servers.FaultForget
	FaultOutage = servers.FaultOutage
	FaultClock  = servers.FaultClock

	// Of several masters a majority is killed at once, and there again with its data, which each
	// writes down every second, or with nothing.
	FaultMajority = servers.FaultMajority
	FaultBlank    = servers.FaultBlank

	// Of a PostgreSQL or MariaDB half of the connections are ended, or all that are left are taken
	// by others.
	FaultTerminate = servers.FaultTerminate
	FaultExhaust   = servers.FaultExhaust

	// The members of an etcd, or masters, start again, one after another; each master when the one
	// before has its vote again.
	FaultRolling = servers.FaultRolling
)

// Topologies are the servers that a run can start.
func Topologies() []string { return servers.Topologies() }

// Faults are what can be done to them, to some of them at least.
func Faults() []string { return servers.Faults() }
