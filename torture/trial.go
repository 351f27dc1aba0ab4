//go:build linux || darwin

package torture

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// The length of rounds. Logs are to be small, so what goes on for longer is several rounds; those
// of a negative control are shorter, because it ends with the first round in which it failed.
const (
	longestRound = 10 * time.Second
	twinRound    = 2 * time.Second
	longestTwin  = 10 * time.Second // or half of what was asked for
)

// play runs a plan in rounds for d, or until a negative control has failed. A trial that has not
// seen enough by then goes on until it has.
func play(ctx context.Context, c *conductor, scenario string, p plan, w negativeControl, d time.Duration) (Trial, error) {
	p.label = scenario
	length := min(d, max(longestRound, p.length))
	if w.name != "" {
		p.label += ", twin " + w.name
		d = max(d/2, longestTwin)
		length = max(twinRound, 7*c.TTL)
		if c.servers != nil && c.servers.Proxied() == nil && len(p.harm.server) > 0 || p.length > 0 {
			// A failover takes seconds, in which nobody gets in, and so does the return of a
			// majority.
			d, length = 3*d, 3*length
		}
	}
	began := monotonic.Now()
	j := newJudgement(w)
	end := began.Add(d)
	for end.Sub(monotonic.Now()) > length/2 || end.Add(goOn) > monotonic.Now() && !enoughSeen(c, j.trial(scenario, w, "", "", 0)) {
		r, err := runRound(ctx, c, p, length)
		if err != nil {
			return Trial{}, err
		}
		j.judge(c, p, r)
		if check := j.checks[w.mustFail]; check != nil && check.Violations > 0 {
			break
		}
	}
	return j.trial(scenario, w, p.describe(c.TTL, c.Grace), p.harm.why, monotonic.Now().Sub(began)), nil
}

// goOn is how long a run goes on beyond what was asked for, until it has cases enough. A machine
// that is slow has few of them.
const goOn = 2 * time.Minute

// enoughSeen reports whether a trial has seen all that it is to judge.
func enoughSeen(c *conductor, t Trial) bool {
	return t.convicted() || !t.toothless() && (t.Twin != "" || c.want == nil || c.want(t))
}
