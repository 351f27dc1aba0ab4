//go:build linux || darwin

package torture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/torture/internal/history"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// judgement adds up the rounds of one trial.
type judgement struct {
	excused  []string // checks that may fail
	tell     bool     // show how the one that must fail did
	negative bool     // it is a negative control: of the others that may fail, nothing is shown
	checks   map[string]*Check
	order    []string
	errors   []string

	grants, losses, handoffs, refused, doubtful, kills, stops, cuts, full, wentOn float64
	longest                                                                       time.Duration
	shares                                                                        map[int]int64
	done                                                                          map[string]int
	margins, naps                                                                 []time.Duration
	probe, first                                                                  time.Duration
	swept, byStore                                                                int
}

func newJudgement(w negativeControl) *judgement {
	return &judgement{
		excused: append([]string{w.mustFail}, w.mayFail...), tell: w.tell, negative: w.name != "", checks: map[string]*Check{}, shares: map[int]int64{}, done: map[string]int{},
	}
}

// take adds what a check found.
func (j *judgement) take(id, title string, hs *history.History, f history.Finding) {
	c := j.checks[id]
	if c == nil {
		c = &Check{ID: id, Title: title}
		j.checks[id] = c
		j.order = append(j.order, id)
	}
	c.Cases += f.Cases
	c.Violations += f.Failed
	c.Void += f.Void
	excused := slices.Contains(j.excused, id)
	switch {
	case !excused || j.tell && id == j.excused[0]:
		c.Stories = append(c.Stories, hs.Traces(f, 3-len(c.Stories))...)
	case !j.negative: // what it cost, by an example
		c.Stories = append(c.Stories, hs.Traces(f, 1-len(c.Stories))...)
	}
}

// judge runs the checks over a round: all that its plan has cases for.
func (j *judgement) judge(c *conductor, p plan, r *round) {
	hs := r.history
	locked, permits := p.job.Guard != worker.Unlocked && p.job.Guard != worker.Shared, max(p.job.Permits, 1)
	if locked && c.tokens() {
		j.take("V1", history.TitleTokens, hs, history.CheckTokens(hs, !slices.Contains(j.excused, "V3")))
	}
	if p.job.Guard != worker.Shared {
		j.take("V2", history.TitleData, hs, history.CheckData(hs, p.job.Guard == worker.Fenced))
	}
	title := history.TitleOverlap
	if permits > 1 {
		title = history.TitlePermits
	}
	j.take("V3", title, hs, history.CheckOverlap(hs, permits))
	if p.noticed() {
		n := history.CheckNotice(hs, c.Grace)
		j.take("V4", history.TitleNotice, hs, n.Finding)
		j.byStore += n.Told
		j.margins, j.naps = append(j.margins, n.Margins...), append(j.naps, n.Naps...)
		j.checks["V4"].Note = j.notice()
	}
	if p.probe {
		j.take("V6", history.TitleAfter, hs, history.Finding{Cases: r.probes, Failed: len(r.stuck), Void: r.void, Violations: r.stuck})
		goesOn, slowest := history.CheckGoesOn(hs, c.TTL+slack)
		j.take("V6", history.TitleAfter, hs, goesOn)
		j.wentOn += float64(goesOn.Cases - goesOn.Failed)
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
		j.take("V7", history.TitleTidy, hs, history.CheckTidy(hs))
		j.take("V7", history.TitleTidy, hs, history.Finding{Cases: r.counted, Failed: len(r.kept), Void: r.untold, Violations: r.kept})
	}
	if p.soon > 0 {
		j.take("V8", history.TitleSoon, hs, history.CheckSoon(hs, p.soon))
	}
	for _, err := range r.errors {
		j.errors = append(j.errors, err.Error())
	}
	j.count(c, r)
}

// saidByStore is how often the store said when the next got in after a loss.
const saidByStore = "said by the store"

// notice describes in how good time holders were told.
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

// count adds up the figures, which no check judges.
func (j *judgement) count(c *conductor, r *round) {
	for name := range r.history.Names {
		var last *history.Call
		for _, h := range r.history.Granted(name) {
			j.grants++
			if last != nil && last.Life.Slot != h.Life.Slot {
				j.handoffs++
			}
			last = h
			j.longest = max(j.longest, h.Granted.Sub(h.Asked))
			j.shares[h.Life.Slot*c.Goroutines+h.Goroutine]++
			if h.Told != 0 {
				j.losses++
			}
			switch h.Write {
			case history.Refused:
				j.refused++
			case history.Doubtful:
				j.doubtful++
			case history.Unwritten, history.Acknowledged:
			}
		}
	}
	for _, l := range r.history.Lives {
		if l.Full {
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

// trial returns the verdict over all rounds.
func (j *judgement) trial(scenario string, w negativeControl, setup, why string, took time.Duration) Trial {
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
		{Name: "Jain", Value: history.Jain(shares)},
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
