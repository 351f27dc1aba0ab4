//go:build linux || darwin

package torture

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/internal/worker"
)

// The negative controls of scenarios with faults. Without the fence tokens, exclusion and notice
// are as before. Without grace a lease is trusted for too long, and two may be valid at once; but
// their tokens are in order, and the fence holds.
var (
	withoutFence = negativeControl{name: "without the fence", mustFail: "V2", change: func(p *plan) { p.job.Guard = worker.Unfenced }}
	withoutLock  = negativeControl{name: "without the lock", mustFail: "V3", mayFail: []string{"V2"}, change: func(p *plan) {
		p.job.Guard, p.job.Stalls = worker.Unlocked, 0
	}}
	withoutGrace = negativeControl{name: "without grace, time from the reply", mustFail: "V4", mayFail: []string{"V1", "V3"}, change: func(p *plan) {
		p.job.Lie, p.job.Stalls = true, min(p.job.Stalls, 10)
	}}
)

// playAll runs a plan and its negative controls. A plan that failed needs none.
func playAll(ctx context.Context, c *conductor, scenario string, p plan, controls ...negativeControl) ([]Trial, error) {
	t, err := play(ctx, c, scenario, p, negativeControl{mayFail: p.harm.excuse}, c.For)
	if err != nil {
		return nil, err
	}
	trials := []Trial{t}
	if t.convicted() {
		return trials, nil
	}
	for _, w := range controls {
		q := p
		q.probe = false
		w.change(&q)
		w.mayFail = append(slices.Clone(w.mayFail), p.harm.excuse...)
		t, err := play(ctx, c, scenario, q, w, c.For)
		if err != nil {
			return nil, err
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// runStorm runs the scenario with all faults at once.
func runStorm(ctx context.Context, c *conductor) ([]Trial, error) {
	p := stormy(c)
	var controls []negativeControl
	if c.untimed {
		p.harm.excuse = append(slices.Clone(p.harm.excuse), withoutGrace.mustFail)
	} else {
		controls = append(controls, withoutGrace)
	}
	controls = append(controls, withoutLock)
	if c.tokens() {
		controls = append(controls, withoutFence)
	}
	return playAll(ctx, c, Storm, p, controls...)
}

// stormy returns the plan of a storm, which harms servers that were started for it.
func stormy(c *conductor) plan {
	p := plan{
		processes: c.Processes, names: c.Names, kills: max(c.Processes*3/8, 1), stops: true, probe: true,
		job: worker.Job{
			Guard: c.guard(), Count: c.Goroutines, Cuts: true, Stalls: 40,
			Hold: time.Millisecond, Rest: 5 * time.Millisecond,
		},
	}
	if c.servers != nil {
		harmServers(c, &p)
	}
	return p
}

// harmServers adds the faults of the servers to the plan of a storm. Workers reach servers over
// proxies; where servers tell clients of one another they cannot, and cut themselves off as ever.
func harmServers(c *conductor, p *plan) {
	// Where nothing is done to links workers cut themselves off, or no negative control would be
	// told late.
	p.job.Cuts = !slices.Contains(c.Faults, FaultLink)
	p.job.Spare = c.servers.Spare(c.TTL)
	for _, f := range c.Faults {
		switch {
		case f != FaultLink:
			p.harm.server = append(p.harm.server, f)
		case c.servers.Proxied() != nil:
			p.harm.proxied = true
		default:
			p.job.Cuts = true
		}
	}
	p.length = c.servers.Round(c.Faults)
	p.harm.excuse, p.harm.why = c.servers.Price(c.Faults)
}

// runKills runs a contest through the fence while workers die.
func runKills(ctx context.Context, c *conductor) ([]Trial, error) {
	p := plan{
		processes: c.Processes, names: 1, kills: max(c.Processes*3/8, 1), probe: true,
		job: worker.Job{Guard: c.guard(), Count: c.Goroutines},
	}
	return playAll(ctx, c, Kills, p, withoutLock)
}

// runNotice makes every holder lose its lease. Each lease has a session of its own, so that many
// names can go through this at the same time, each at its own pace.
func runNotice(ctx context.Context, c *conductor) ([]Trial, error) {
	const each = 20 // goroutines of a worker; each shares a name with every second worker
	p := plan{
		processes: c.Processes, names: 2 * each, spread: true, stops: true, probe: true,
		job: worker.Job{Guard: c.guard(), Count: each, Cuts: true, Stalls: 1, Alone: true},
	}
	return playAll(ctx, c, Notice, p, withoutGrace)
}
