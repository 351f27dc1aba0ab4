//go:build linux || darwin

package torture

import (
	"context"
	"slices"
	"time"
)

// twin is a plan that lacks one thing, with the check that it must fail for that, and those that it may.
type twin struct {
	name     string
	mustFail string
	mayFail  []string
	tell     bool // how it failed
	change   func(*plan)
}

// The twins of scenarios with faults. Without the fence tokens, exclusion and notice are as before. Without grace a
// lease is trusted for too long, and two may be valid at once; but their tokens are in order, and the fence holds.
var (
	withoutFence = twin{name: "without the fence", mustFail: "V2", change: func(p *plan) { p.job.Guard = unfenced }}
	withoutLock  = twin{name: "without the lock", mustFail: "V3", mayFail: []string{"V2"}, change: func(p *plan) {
		p.job.Guard, p.job.Stalls = unlocked, 0
	}}
	withoutGrace = twin{name: "without grace, time from the reply", mustFail: "V4", mayFail: []string{"V1", "V3"}, change: func(p *plan) {
		p.job.Lie, p.job.Stalls = true, min(p.job.Stalls, 10)
	}}
)

// playAll plays a plan and its twins. A plan that failed needs none.
func (c *conductor) playAll(ctx context.Context, scenario string, p plan, twins ...twin) ([]Trial, error) {
	t, err := c.play(ctx, scenario, p, twin{mayFail: p.harm.excuse}, c.For)
	if err != nil {
		return nil, err
	}
	trials := []Trial{t}
	if t.convicted() {
		return trials, nil
	}
	for _, w := range twins {
		q := p
		q.probe = false
		w.change(&q)
		w.mayFail = append(slices.Clone(w.mayFail), p.harm.excuse...)
		t, err := c.play(ctx, scenario, q, w, c.For)
		if err != nil {
			return nil, err
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// runStorm is everything at once.
func (c *conductor) runStorm(ctx context.Context) ([]Trial, error) {
	p := c.stormy()
	var twins []twin
	if c.untimed {
		p.harm.excuse = append(slices.Clone(p.harm.excuse), withoutGrace.mustFail)
	} else {
		twins = append(twins, withoutGrace)
	}
	twins = append(twins, withoutLock)
	if c.tokens() {
		twins = append(twins, withoutFence)
	}
	return c.playAll(ctx, Storm, p, twins...)
}

// stormy is the plan of a storm, over the servers that were started for it too.
func (c *conductor) stormy() plan {
	p := plan{
		processes: c.Processes, names: c.Names, kills: max(c.Processes*3/8, 1), stops: true, probe: true,
		job: job{
			Guard: c.guard(), Count: c.Goroutines, Cuts: true, Stalls: 40,
			Hold: time.Millisecond, Rest: 5 * time.Millisecond,
		},
	}
	if c.servers != nil {
		c.harm(&p)
	}
	return p
}

// harm has the servers of a storm harmed. The way to one Redis, and to masters that know nothing of each other, leads over
// cables; where servers tell clients of one another it cannot, and workers cut themselves off as ever.
func (c *conductor) harm(p *plan) {
	// Where nothing is done to links workers cut themselves off, or no twin would be told late.
	p.job.Cuts = !slices.Contains(c.Faults, FaultLink)
	p.job.Spare = c.servers.spare(c.TTL)
	for _, f := range c.Faults {
		switch {
		case f != FaultLink:
			p.harm.server = append(p.harm.server, f)
		case c.servers.wirable() != nil:
			p.harm.wired = true
		default:
			p.job.Cuts = true
		}
	}
	if c.servers.masters != nil && slices.ContainsFunc(c.Faults, waits) {
		p.length = waitingRound
	}
	p.harm.excuse, p.harm.why = c.servers.price(c.Faults)
}

// runKills is the contest through the fence while workers die.
func (c *conductor) runKills(ctx context.Context) ([]Trial, error) {
	p := plan{
		processes: c.Processes, names: 1, kills: max(c.Processes*3/8, 1), probe: true,
		job: job{Guard: c.guard(), Count: c.Goroutines},
	}
	return c.playAll(ctx, Kills, p, withoutLock)
}

// runNotice makes every holder lose its lease. Each lease has a session of its own, so that many names can go through
// this at the same time, each at its own pace.
func (c *conductor) runNotice(ctx context.Context) ([]Trial, error) {
	const each = 20 // goroutines of a worker: each has a name that it shares with every second worker
	p := plan{
		processes: c.Processes, names: 2 * each, spread: true, stops: true, probe: true,
		job: job{Guard: c.guard(), Count: each, Cuts: true, Stalls: 1, Alone: true},
	}
	return c.playAll(ctx, Notice, p, withoutGrace)
}
