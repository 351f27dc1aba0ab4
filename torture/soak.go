//go:build linux || darwin

package torture

import (
	"context"
	"time"
)

// The length of a soak's rounds, and how long it may take until its links have been cut so often.
const (
	soakRound   = 30 * time.Second
	longestSoak = 6 * time.Hour
)

// runSoak cuts links again and again, and nothing else goes wrong: every holder holds on until it is told, and each must be told in
// time. It goes on until there were so many cuts.
func (c *conductor) runSoak(ctx context.Context) ([]Trial, error) {
	// Each goroutine of a worker has a name that three others want too, each of another worker. There are so many names that with more
	// workers more links are cut beside one another: with a longer TTL a cut takes longer, and is no more work.
	const each = 4
	p := plan{
		processes: c.Processes, names: max(2*each, c.Processes), spread: true, probe: true,
		job: job{Guard: c.guard(), Count: each, Cuts: true, Stalls: 1, Alone: true},
	}
	if c.servers != nil {
		p.harm.excuse, p.harm.why = c.servers.price([]string{FaultLink})
		p.job.Spare = c.servers.spare(c.TTL)
		if c.servers.wirable() != nil {
			p.job.Cuts, p.job.Alone, p.harm.wired = false, false, true
		}
	}
	p.label = Soak
	began, w := now(), twin{mayFail: p.harm.excuse}
	j := newJudgement(w)
	for j.cutsMade(p) < c.Cuts && now().sub(began) < longestSoak {
		r, err := c.storm(ctx, p, min(c.For, soakRound))
		if err != nil {
			return nil, err
		}
		j.judge(c, p, r)
		c.say("%s: %d of %d links cut, %d told late", Soak, j.cutsMade(p), c.Cuts, j.checks["V4"].Violations)
		if j.trial(Soak, w, "", "", 0).convicted() {
			break
		}
	}
	t := j.trial(Soak, w, c.describe(p), p.harm.why, now().sub(began))
	t.Checks = append(t.Checks, bounded("cuts", "links are cut", t.convicted() || j.cutsMade(p) >= c.Cuts, "%d, at least %d", j.cutsMade(p), c.Cuts))
	if t.convicted() {
		return []Trial{t}, nil
	}
	q := p
	q.probe = false
	withoutGrace.change(&q)
	v := withoutGrace
	v.mayFail = append(append([]string{}, v.mayFail...), p.harm.excuse...)
	bad, err := c.play(ctx, Soak, q, v, c.For)
	return []Trial{t, bad}, err
}

// cutsMade is how often links were cut: those of workers by the conductor, or where each lease has a link of its own, so many
// leases as were lost by it.
func (j *judgement) cutsMade(p plan) int {
	if p.harm.wired {
		return j.done[FaultLink]
	}
	return int(j.losses)
}
