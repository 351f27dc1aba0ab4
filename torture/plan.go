//go:build linux || darwin

package torture

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/torture/internal/history"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// plan is what the rounds of a trial have in common.
type plan struct {
	label     string
	job       worker.Job // for every worker
	processes int
	names     int
	spread    bool // worker i has names of its own: each is shared by a few workers only
	kills     int  // how many of the workers may be killed
	stops     bool
	probe     bool          // see afterwards whether every name can be had
	soon      time.Duration // within which a free name is granted; 0 = that is not looked at
	length    time.Duration // of a round, at least; 0 = any
	harm      harm
}

// noticed reports whether leases are lost, so that V4 has cases.
func (p plan) noticed() bool {
	return p.job.Guard != worker.Unlocked && p.job.Guard != worker.Shared && (p.stops || p.job.Cuts || p.harm.proxied || len(p.harm.server) > 0)
}

// describe describes the plan in a line.
func (p plan) describe(ttl, grace time.Duration) string {
	s := fmt.Sprintf("%d processes × %d goroutines, names: %d, TTL %v, grace %v", p.processes, p.job.Count, p.names, ttl, grace)
	for _, x := range []struct {
		is   bool
		what string
	}{
		{p.kills > 0, fmt.Sprintf("%d killed and restarted", p.kills)},
		{p.stops, "stopped"},
		{p.job.Cuts, "cut off"},
		{p.job.Permits > 0, fmt.Sprintf("%d permits", p.job.Permits)},
		{p.harm.proxied && !p.harm.calm && !p.harm.resets, "on links that stall"},
		{p.harm.resets, "on links whose connections are reset, with the replies that are under way"},
		{p.harm.calm, fmt.Sprintf("on links that are up to %v slow", 2*p.harm.delay)},
		{p.harm.apart > 0, fmt.Sprintf("%d masters out of reach of all but one", p.harm.apart)},
		{p.harm.skew != 0, fmt.Sprintf("the clock of one %v ahead", p.harm.skew)},
		{len(p.harm.server) > 0, "server: " + strings.Join(p.harm.server, ", ")},
	} {
		if x.is {
			s += ", " + x.what
		}
	}
	return s
}

// The schemes of locks that are not flawed.
const (
	realSession   = "postgres"
	realRedis     = "redis"
	realRedlock   = "redlock"
	realMemcached = "memcached"
	realEtcd      = "etcd"
	realZooKeeper = "zk"
)

// dated reports whether a store can say when it granted a claim. Masters that know nothing of each
// other cannot: the time that their tokens tell is that of the request that brought the grant,
// which a proxy may have held back since.
func dated(store string) bool { return !strings.HasPrefix(store, realRedlock+"://") }

// negativeControl is a plan that lacks one thing, with the check that it must fail for that, and
// those that it may.
type negativeControl struct {
	name     string
	mustFail string
	mayFail  []string
	tell     bool // show how it failed
	change   func(*plan)
}

// harm is what is done to the servers of a trial and to the way to them, and what that may cost.
type harm struct {
	proxied bool          // every worker has a proxy to each server, and these are damaged
	delay   time.Duration // of the proxies
	calm    bool          // the proxies are slow, and nothing else is wrong with them
	resets  bool          // connections are reset, with the replies under way, and nothing else
	apart   int           // the first masters, so many, that no worker reaches but the last
	server  []string      // what is done to the servers
	pace    time.Duration // by which faults of servers follow one another; 0 = the TTL
	once    bool          // one stale failover, of a replica that is cut off before the rest
	skew    time.Duration // how far ahead the clock of the first worker is
	excuse  []string      // checks that may fail for it
	why     string
}

// split gives the workers proxies that are slow and do not fail.
func (p *plan) split() { p.harm.proxied, p.harm.calm, p.harm.delay = true, true, 3*time.Millisecond }

// round is what came of a round.
type round struct {
	history *history.History
	kills   int
	stops   int
	cuts    int64
	done    map[string]int // faults of servers and links, by kind
	probes  int
	slowest time.Duration       // until a name could be had after the faults
	swept   int                 // names where claims of the dead stood on a master until the next claim
	stuck   []history.Violation // of names that could not be had
	kept    []history.Violation // of servers that have more than before
	counted int                 // times that the servers were counted
	untold  int                 // times that nothing can be said of that
	void    int                 // probes that say nothing: the conductor did not run
	errors  []error
}
