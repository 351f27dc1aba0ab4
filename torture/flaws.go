//go:build linux || darwin

package torture

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/flawed"
	"github.com/interlock-go/interlock/torture/internal/servers"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// control is how a lock with a flaw is convicted.
type control struct {
	flaw  string
	check string // that it must fail
	start string // the topology
	plan  func(*plan)

	ttl, grace time.Duration // where they are not the usual ones
	round      time.Duration
}

// controls are the flaws, each with the least that provokes it: what the plan says besides 4
// workers of 2 goroutines on 2 names. Where holders stall they hold on until they are told of a
// loss, while their link is damaged.
var controls = []control{
	{flaw: "forever", check: "V6", start: OneRedis, plan: func(p *plan) { p.kills = 2 }},
	{flaw: "two-steps", check: "V6", start: OneRedis, plan: func(p *plan) {
		p.kills, p.harm.proxied, p.harm.delay, p.names = 3, true, 5*time.Millisecond, 4
	}},
	{flaw: "plain-delete", check: "V3", start: OneRedis, plan: func(p *plan) {
		p.stops, p.harm.proxied, p.job.Stalls, p.names, p.job.Count = true, true, 4, 4, 4
	}},
	{flaw: "one-value", check: "V3", start: OneRedis, plan: func(p *plan) {
		p.stops, p.harm.proxied, p.job.Stalls, p.names, p.job.Count = true, true, 4, 4, 4
	}},
	{flaw: "client-clocks", check: "V2", start: OneRedis, plan: func(p *plan) { p.harm.skew = time.Second }},
	{flaw: "reply-time", check: "V4", start: OneRedis, grace: 30 * time.Millisecond, plan: func(p *plan) {
		p.harm.proxied, p.job.Stalls = true, 1
	}},
	{flaw: "revive", check: "V3", start: OneRedis, plan: func(p *plan) {
		p.stops, p.harm.proxied, p.job.Stalls, p.names, p.job.Count = true, true, 2, 4, 6
	}},
	// Leases that are not renewed during a failover, and that began when the replica heard nothing
	// any more.
	{flaw: "promoted", check: "V3", start: Sentinel, ttl: 15 * time.Second, grace: 500 * time.Millisecond, round: 3 * time.Second, plan: func(p *plan) {
		p.harm.server, p.harm.once, p.probe = []string{FaultStale}, true, false
		p.names, p.job.Count, p.job.Hold = 40, 20, 2000*time.Millisecond
	}},
	// All is well but that they leave something behind.
	{flaw: "watchdog", check: "V7", start: OneRedis, plan: func(*plan) {}},
	{flaw: "unclosed", check: "V7", start: OneRedis, plan: func(*plan) {}},
	{flaw: "litter", check: "V7", start: OneRedis, plan: func(*plan) {}},
	// No lock at all.
	{flaw: "pooled", check: "V3", start: PostgresPooler, plan: func(*plan) {}},
	// Holders that nobody can reach hold until their own time is over, while the server's is up to
	// two seconds shorter.
	{flaw: "face-value", check: "V3", start: Memcached, ttl: 3 * time.Second, grace: 100 * time.Millisecond, round: 8 * time.Second, plan: func(p *plan) {
		p.stops, p.harm.proxied, p.job.Stalls, p.names, p.job.Count = true, true, 2, 4, 4
	}},
	{flaw: "lapsed", check: "V3", start: Etcd, ttl: 2 * time.Second, round: 10 * time.Second, plan: func(p *plan) {
		p.stops, p.harm.proxied, p.job.Stalls, p.names, p.job.Count = true, true, 2, 4, 6
	}},
	// Connections are reset with the answers that were under way, among them those to creates.
	{flaw: "unprotected", check: "V8", start: ZooKeeper, ttl: time.Second, round: 5 * time.Second, plan: func(p *plan) {
		p.harm.proxied, p.harm.resets, p.probe, p.soon = true, true, false, 1500*time.Millisecond
		p.names, p.job.Count = 6, 4
	}},

	// Over several masters. On slow links workers reach the masters in different
	// orders, so holders have no more of them than they need.
	{flaw: "quorum", check: "V3", start: Redlock, plan: func(p *plan) { p.split() }},
	{flaw: "token-max", check: "V1", start: Redlock, plan: func(p *plan) {
		p.split()
		p.harm.server = []string{FaultPause}
	}},
	// Three of four workers reach nothing but the three masters that may forget, and the fourth,
	// which reaches all, needs one of these: it gets in when one forgets, long before the next
	// renewal of its holder.
	{flaw: "rejoin", check: "V3", start: Redlock, ttl: 1500 * time.Millisecond, round: 5 * time.Second, plan: func(p *plan) {
		p.split()
		p.harm.apart, p.harm.server, p.harm.pace = servers.Keepers, []string{FaultForget}, 200*time.Millisecond
		p.names, p.job.Count, p.job.Hold = 4, 8, 300*time.Millisecond
	}},
	{flaw: "minority", check: "V8", start: Redlock, ttl: 3 * time.Second, round: 5 * time.Second, plan: func(p *plan) {
		p.split()
		p.probe, p.soon = false, 1500*time.Millisecond
	}},
	{flaw: "counting", check: "V3", start: Redlock, plan: func(p *plan) {
		p.split()
		p.probe, p.job.Guard, p.job.Permits, p.job.Count, p.job.Hold = false, worker.Shared, 2, 4, 10*time.Millisecond
	}},
}

// title is what is wrong with the lock.
func (k control) title() string {
	for _, f := range flawed.Flaws() {
		if f.Name == k.flaw {
			return f.Title
		}
	}
	return ""
}

// The usual length of a control's rounds, and how long it may take until a flaw is convicted.
const (
	controlRound      = 2 * time.Second
	longestConviction = 3 * time.Minute
)

// everything is what a lock with a flaw may fail.
var everything = []string{"V1", "V2", "V3", "V4", "V6", "V7", "V8"}

// convictFlawed runs the controls of the flaws that were asked for.
func convictFlawed(ctx context.Context, c *conductor) ([]Trial, error) {
	var trials []Trial
	for _, k := range controls {
		if !slices.Contains(c.Flawed, k.flaw) && !slices.Contains(c.Flawed, "all") {
			continue
		}
		bad, rounds, err := suspect(ctx, c, k, flawed.Prefix+k.flaw, 0)
		if err != nil {
			return nil, fmt.Errorf("torture: the flaw %s: %w", k.flaw, err)
		}
		trials = append(trials, bad)
		for _, scheme := range k.correct() {
			good, _, err := suspect(ctx, c, k, scheme, rounds)
			if err != nil {
				return nil, fmt.Errorf("torture: the correct lock beside the flaw %s: %w", k.flaw, err)
			}
			trials = append(trials, good)
		}
	}
	return trials, nil
}

// correct are the schemes of locks without a flaw: the real one, in a program that has it, and for
// several masters the one that differs from the flawed one by nothing but the flaw. The real one
// has no permits there.
func (k control) correct() []string {
	single, several := slices.Contains(driver.Schemes(), realRedis), slices.Contains(driver.Schemes(), realRedlock)
	switch {
	case k.start == PostgresPooler:
		return []string{realSession}
	case k.start == Memcached:
		return []string{realMemcached}
	case k.start == Etcd && slices.Contains(driver.Schemes(), realEtcd):
		return []string{flawed.Prefix + "leased", realEtcd}
	case k.start == Etcd:
		return []string{flawed.Prefix + "leased"}
	case k.start == ZooKeeper && slices.Contains(driver.Schemes(), realZooKeeper):
		return []string{flawed.Prefix + "protected", realZooKeeper}
	case k.start == ZooKeeper:
		return []string{flawed.Prefix + "protected"}
	case k.start != Redlock && single:
		return []string{realRedis}
	case k.start != Redlock:
		return []string{flawed.Prefix + "honest"}
	case several && k.flaw != "counting":
		return []string{flawed.Prefix + "majority", realRedlock}
	}
	return []string{flawed.Prefix + "majority"}
}

// suspect runs a lock under what must convict the flaw, on servers of its own: for so
// many rounds, or with 0 until it is convicted.
func suspect(ctx context.Context, c *conductor, k control, scheme string, rounds int) (Trial, int, error) {
	s, err := servers.Start(ctx, k.start, nil)
	if err != nil {
		return Trial{}, 0, err
	}
	defer s.Close()
	own := *c
	own.TTL, own.Grace = cmp.Or(k.ttl, c.TTL), cmp.Or(k.grace, c.Grace)
	ours := !strings.HasPrefix(scheme, flawed.Prefix)
	s.SetMaxTTL(own.TTL)
	s.UsedBy(scheme)
	own.servers, own.Store = s, scheme+"://"+s.Host()
	if ours {
		own.Store = s.URL()
	}
	if scheme == realSession { // the same lock, which is refused there
		own.Store = s.BehindPooler() + "&technique=session"
	}
	closeStore, err := own.open(ctx)
	if err != nil {
		return Trial{}, 0, err
	}
	defer closeStore()

	p := plan{
		processes: 4, names: 2, probe: true,
		job: worker.Job{Guard: own.guard(), Count: 2, Hold: time.Millisecond, Rest: 5 * time.Millisecond},
	}
	k.plan(&p)
	w := negativeControl{name: "correct"}
	if len(k.correct()) > 1 || s.Independent() {
		w.name += " (" + strings.TrimPrefix(scheme, flawed.Prefix) + ")"
	}
	bad := rounds == 0
	switch {
	case bad:
		w = negativeControl{name: k.flaw, mustFail: k.check, mayFail: everything, tell: true}
	case own.guard() == worker.Unfenced:
		w.mayFail = []string{"V2"} // a lock alone cannot keep the writes of a paused holder out
	}
	if excuse, why := s.Price(p.harm.server); !bad && len(excuse) > 0 {
		w.mayFail, p.harm.why = append(w.mayFail, excuse...), why
	}
	if ours {
		p.harm.skew = 0 // it looks at no client's clock
	}
	p.label = fmt.Sprintf("%s, %s", Flawed, w.name)
	began, n := monotonic.Now(), 0
	j := newJudgement(w)
	for bad && monotonic.Now().Sub(began) < longestConviction || n < rounds || !bad && j.grants == 0 && monotonic.Now().Sub(began) < goOn {
		r, err := runRound(ctx, &own, p, cmp.Or(k.round, controlRound))
		if err != nil {
			return Trial{}, 0, err
		}
		n++
		j.judge(&own, p, r)
		if bad && j.checks[k.check].Violations > 0 {
			break
		}
	}
	if bad {
		j.errors = nil // what goes wrong for the conductor, too, goes wrong by the flaw
	}
	setup := p.describe(own.TTL, own.Grace)
	if bad {
		setup = k.title() + "; " + setup
	}
	t := j.trial(Flawed, w, setup, p.harm.why, monotonic.Now().Sub(began))
	return t, n, nil
}
