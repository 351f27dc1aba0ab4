//go:build linux || darwin

package torture

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// judgement adds up the rounds of one trial.
type judgement struct {
	excused []string // checks that may fail
	tell    bool     // how the one that must fail did
	twin    bool     // of the others that may, nothing is told
	checks  map[string]*Check
	order   []string
	errors  []string

	grants, losses, handoffs, refused, doubtful, kills, stops, cuts, full, wentOn float64
	longest                                                                       time.Duration
	shares                                                                        map[int]int64
	done                                                                          map[string]int
	margins, naps                                                                 []time.Duration
	probe, first                                                                  time.Duration
	swept, byStore                                                                int
}

func newJudgement(w twin) *judgement {
	return &judgement{
		excused: append([]string{w.mustFail}, w.mayFail...), tell: w.tell, twin: w.name != "", checks: map[string]*Check{}, shares: map[int]int64{}, done: map[string]int{},
	}
}

// take adds what a check found.
func (j *judgement) take(id, title string, hs *history, f finding) {
	c := j.checks[id]
	if c == nil {
		c = &Check{ID: id, Title: title}
		j.checks[id] = c
		j.order = append(j.order, id)
	}
	c.Cases += f.cases
	c.Violations += f.failed
	c.Void += f.void
	excused := slices.Contains(j.excused, id)
	switch {
	case !excused || j.tell && id == j.excused[0]:
		c.Stories = append(c.Stories, hs.stories(f, 3-len(c.Stories))...)
	case !j.twin: // what it cost, by an example
		c.Stories = append(c.Stories, hs.stories(f, 1-len(c.Stories))...)
	}
}

// judge looks at a round: at everything that the plan lets it show.
func (j *judgement) judge(c *conductor, p plan, r *round) {
	hs := r.history
	locked, permits := p.job.Guard != unlocked && p.job.Guard != shared, max(p.job.Permits, 1)
	if locked && c.tokens() {
		j.take("V1", titleTokens, hs, checkTokens(hs, !slices.Contains(j.excused, "V3")))
	}
	if p.job.Guard != shared {
		j.take("V2", titleData, hs, checkData(hs, p.job.Guard == fenced))
	}
	title := titleOverlap
	if permits > 1 {
		title = titlePermits
	}
	j.take("V3", title, hs, checkOverlap(hs, permits))
	if p.noticed() {
		n := checkNotice(hs, c.Grace)
		j.take("V4", titleNotice, hs, n.finding)
		j.byStore += n.told
		j.margins, j.naps = append(j.margins, n.margins...), append(j.naps, n.naps...)
		j.checks["V4"].Note = j.notice()
	}
	if p.probe {
		j.take("V6", titleAfter, hs, finding{cases: r.probes, failed: len(r.stuck), void: r.void, violations: r.stuck})
		goesOn, slowest := checkGoesOn(hs, c.TTL+slack)
		j.take("V6", titleAfter, hs, goesOn)
		j.wentOn += float64(goesOn.cases - goesOn.failed)
		j.first = max(j.first, slowest)
		j.probe = max(j.probe, r.slowest)
		j.swept += r.swept
		j.checks["V6"].Note = fmt.Sprintf("the slowest took %v", j.probe.Round(time.Millisecond))
		if j.wentOn > 0 {
			j.checks["V6"].Note += fmt.Sprintf("; after %v faults somebody got in within %v", j.wentOn, j.first.Round(time.Millisecond))
		}
		if j.swept > 0 {
			j.checks["V6"].Note += fmt.Sprintf("; of %d names a claim of the dead stood on a master until the next one came by", j.swept)
		}
	}
	if p.probe {
		j.take("V7", titleTidy, hs, checkTidy(hs))
		j.take("V7", titleTidy, hs, finding{cases: r.counted, failed: len(r.kept), void: r.untold, violations: r.kept})
	}
	if p.soon > 0 {
		j.take("V8", titleSoon, hs, checkSoon(hs, p.soon))
	}
	for _, err := range r.errors {
		j.errors = append(j.errors, err.Error())
	}
	j.count(c, r)
}

// saidByStore is how often the store said when the next got in after a loss.
const saidByStore = "said by the store"

// notice says how close it was.
func (j *judgement) notice() string {
	var s string
	if len(j.margins) > 0 {
		slices.Sort(j.margins)
		s = fmt.Sprintf("%d told before, the closest by %v", len(j.margins), j.margins[0].Round(10*time.Microsecond))
	}
	if j.byStore > 0 {
		s += fmt.Sprintf("; of %d the store says when the next got in", j.byStore)
	}
	if n := len(j.naps); n > 0 {
		slices.Sort(j.naps)
		s += fmt.Sprintf("; %d slept then and were told when they had run for %v (median), %v at most", n, j.naps[n/2].Round(10*time.Microsecond), j.naps[n-1].Round(10*time.Microsecond))
	}
	return strings.TrimPrefix(s, "; ")
}

// count adds up what is no rule.
func (j *judgement) count(c *conductor, r *round) {
	for name := range r.history.names {
		var last *handle
		for _, h := range r.history.granted(name) {
			j.grants++
			if last != nil && last.life.slot != h.life.slot {
				j.handoffs++
			}
			last = h
			j.longest = max(j.longest, h.granted.sub(h.asked))
			j.shares[h.life.slot*c.Goroutines+h.goroutine]++
			if h.told != 0 {
				j.losses++
			}
			switch h.write {
			case refused:
				j.refused++
			case doubtful:
				j.doubtful++
			case unwritten, acknowledged:
			}
		}
	}
	for _, l := range r.history.lives {
		if l.full {
			j.full++
		}
	}
	j.kills += float64(r.kills)
	j.stops += float64(r.stops)
	j.cuts += float64(r.cuts)
	for what, n := range r.done {
		j.done[what] += n
	}
}

// trial is the verdict over all rounds.
func (j *judgement) trial(scenario string, w twin, setup, why string, took time.Duration) Trial {
	t := Trial{
		Scenario: scenario, Twin: w.name, MustFail: w.mustFail, MayFail: w.mayFail, Setup: setup, Took: Duration(took), Errors: j.errors,
	}
	for _, id := range j.order {
		t.Checks = append(t.Checks, *j.checks[id])
	}
	t.Why = why
	shares := make([]int64, 0, len(j.shares))
	for _, n := range j.shares {
		shares = append(shares, n)
	}
	t.Figures = []Figure{
		{Name: "leases", Value: j.grants},
		{Name: "lost", Value: j.losses},
		{Name: "handoffs", Value: j.handoffs},
		{Name: "refused writes", Value: j.refused},
		{Name: "doubtful writes", Value: j.doubtful},
		{Name: "kills", Value: j.kills},
		{Name: "stops", Value: j.stops},
		{Name: "calls held up", Value: j.cuts},
		{Name: "longest wait", Value: float64(j.longest) / 1e6, Unit: "ms"},
		{Name: "Jain", Value: jain(shares)},
	}
	for _, what := range slices.Sorted(maps.Keys(j.done)) {
		t.Figures = append(t.Figures, Figure{Name: "faults " + what, Value: float64(j.done[what])})
	}
	if j.wentOn > 0 {
		t.Figures = append(t.Figures, Figure{Name: "went on", Value: j.wentOn})
	}
	if j.byStore > 0 {
		t.Figures = append(t.Figures, Figure{Name: saidByStore, Value: float64(j.byStore)})
	}
	if j.full > 0 {
		t.Figures = append(t.Figures, Figure{Name: "full diaries", Value: j.full})
	}
	return t
}

// The length of rounds. Diaries and their judgement are to be small, so what goes on for longer is several rounds; those
// of a twin are shorter, because it ends with the first round in which it failed.
const (
	longestRound = 10 * time.Second
	twinRound    = 2 * time.Second
	longestTwin  = 10 * time.Second // or half of what was asked for
)

// play plays a plan in rounds for d, or until a twin has failed. One that has not seen enough by then goes on until it has.
func (c *conductor) play(ctx context.Context, scenario string, p plan, w twin, d time.Duration) (Trial, error) {
	p.label = scenario
	length := min(d, max(longestRound, p.length))
	if w.name != "" {
		p.label += ", twin " + w.name
		d = max(d/2, longestTwin)
		length = max(twinRound, 7*c.TTL)
		if c.servers != nil && c.servers.wirable() == nil && len(p.harm.server) > 0 || p.length > 0 {
			// A failover takes seconds, in which nobody gets in, and so does the return of a majority.
			d, length = 3*d, 3*length
		}
	}
	began := now()
	j := newJudgement(w)
	end := began.add(d)
	for end.sub(now()) > length/2 || end.add(goOn) > now() && !c.enough(j.trial(scenario, w, "", "", 0)) {
		r, err := c.storm(ctx, p, length)
		if err != nil {
			return Trial{}, err
		}
		j.judge(c, p, r)
		if check := j.checks[w.mustFail]; check != nil && check.Violations > 0 {
			break
		}
	}
	return j.trial(scenario, w, c.describe(p), p.harm.why, now().sub(began)), nil
}

// enough reports whether a trial has seen all that it is to judge.
func (c *conductor) enough(t Trial) bool {
	return t.convicted() || !t.toothless() && (t.Twin != "" || c.want == nil || c.want(t))
}

// describe says in a line what a plan is.
func (c *conductor) describe(p plan) string {
	s := fmt.Sprintf("%d processes × %d goroutines, names: %d, TTL %v, grace %v", p.processes, p.job.Count, p.names, c.TTL, c.Grace)
	for _, x := range []struct {
		is   bool
		what string
	}{
		{p.kills > 0, fmt.Sprintf("%d killed and restarted", p.kills)},
		{p.stops, "stopped"},
		{p.job.Cuts, "cut off"},
		{p.job.Permits > 0, fmt.Sprintf("%d permits", p.job.Permits)},
		{p.harm.wired && !p.harm.calm && !p.harm.resets, "on links that stall"},
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

// tokens reports whether the store has them.
func (c *conductor) tokens() bool { return c.traits.Fence != 0 }

// guard is the best guard of the number that there is in this store.
func (c *conductor) guard() guardKind {
	if c.tokens() {
		return fenced
	}
	return unfenced
}
