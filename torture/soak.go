//go:build linux || darwin

package torture

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// The length of a soak's rounds, and how long it may take until its links have been cut so often.
const (
	soakRound   = 30 * time.Second
	longestSoak = 6 * time.Hour
)

// runSoak cuts links again and again, and nothing else goes wrong: every holder holds on until it
// is told, and each must be told in time. It goes on until there were so many cuts.
func runSoak(ctx context.Context, c *conductor) ([]Trial, error) {
	// Each goroutine of a worker has a name that three others want too, each of another worker.
	// There are so many names that with more workers more links are cut beside one another: with a
	// longer TTL a cut takes longer, and is no more work.
	const each = 4
	p := plan{
		processes: c.Processes, names: max(2*each, c.Processes), spread: true, probe: true,
		job: worker.Job{Guard: c.guard(), Count: each, Cuts: true, Stalls: 1, Alone: true},
	}
	if c.servers != nil {
		p.harm.excuse, p.harm.why = c.servers.Price([]string{FaultLink})
		p.job.Spare = c.servers.Spare(c.TTL)
		if c.servers.Proxied() != nil {
			p.job.Cuts, p.job.Alone, p.harm.proxied = false, false, true
		}
	}
	p.label = Soak
	began, w := monotonic.Now(), negativeControl{mayFail: p.harm.excuse}
	j := newJudgement(w)
	for cutsMade(j, p) < c.Cuts && monotonic.Now().Sub(began) < longestSoak {
		r, err := runRound(ctx, c, p, min(c.For, soakRound))
		if err != nil {
			return nil, err
		}
		j.judge(c, p, r)
		c.say("%s: %d of %d links cut, %d told late", Soak, cutsMade(j, p), c.Cuts, j.checks["V4"].Violations)
		if j.trial(Soak, w, "", "", 0).convicted() {
			break
		}
	}
	t := j.trial(Soak, w, p.describe(c.TTL, c.Grace), p.harm.why, monotonic.Now().Sub(began))
	t.Checks = append(t.Checks, bounded("cuts", "links are cut", t.convicted() || cutsMade(j, p) >= c.Cuts, "%d, at least %d", cutsMade(j, p), c.Cuts))
	if t.convicted() {
		return []Trial{t}, nil
	}
	q := p
	q.probe = false
	withoutGrace.change(&q)
	v := withoutGrace
	v.mayFail = append(append([]string{}, v.mayFail...), p.harm.excuse...)
	bad, err := play(ctx, c, Soak, q, v, c.For)
	return []Trial{t, bad}, err
}

// cutsMade returns how often links were cut: those of workers by the conductor, or where each lease
// has a link of its own, so many leases as were lost by it.
func cutsMade(j *judgement, p plan) int {
	if p.harm.proxied {
		return j.done[FaultLink]
	}
	return int(j.losses)
}
