//go:build linux || darwin

package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// bout is what the workers of one contest left on the board.
type bout struct {
	entered, counted, final, longest, lost int64
	handoffs, overlaps, disorder, changes  int64
	shares                                 []int64       // counted, by goroutine
	turns                                  []int64       // by process
	lasted                                 time.Duration // the time that counts
	took                                   time.Duration
	errors                                 []string
}

// longestContest is how long a contest may take that goes on until there were handoffs enough.
const longestContest = 17 * time.Minute

// hold runs a contest of workers for d. counts is how many goroutines each has.
func hold(ctx context.Context, c *conductor, j worker.Job, counts []int, d time.Duration) (*bout, error) {
	dir, names, files, err := c.place(1)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "board")
	b, err := workers.OpenBoard(path)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	began := monotonic.Now()
	jobs := make([]worker.Job, len(counts))
	seats := 0
	for i, n := range counts {
		jobs[i] = j
		jobs[i].Task, jobs[i].Store, jobs[i].TTL = "contest", c.Store, max(15*time.Second, c.traits.MinTTL)
		if most := c.traits.MaxTTL; most > 0 {
			jobs[i].TTL = min(jobs[i].TTL, most)
		}
		jobs[i].Names, jobs[i].Files, jobs[i].Board = names, files, path
		jobs[i].Count, jobs[i].First = n, seats
		seats += n
	}
	t, err := worker.NewTeam(dir, jobs)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := t.Await(ctx); err != nil {
		return nil, err
	}
	if patient := c.patient && j.Guard != worker.Unlocked; patient {
		b.Schedule(monotonic.Now(), longestContest)
		for monotonic.Now().Sub(monotonic.Instant(b.Start.Load())) < longestContest && b.Handoffs.Load() < int64(c.Handoffs) && t.AllUp() && ctx.Err() == nil {
			monotonic.Pause(100*time.Millisecond, ctx.Done())
		}
		b.End.Store(int64(monotonic.Now()))
	} else {
		b.Schedule(monotonic.Now(), d)
		monotonic.Pause(d, ctx.Done())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.Finish(monotonic.Now().Add(30 * time.Second))
	out := &bout{
		lasted:   monotonic.Instant(b.End.Load()).Sub(monotonic.Instant(b.Start.Load())),
		handoffs: b.Handoffs.Load(), overlaps: b.Overlaps.Load(), disorder: b.Disorder.Load(), changes: b.Changes.Load(),
		turns: make([]int64, len(counts)),
	}
	for i, n := range counts {
		for s := range n {
			seat := &b.Seats[jobs[i].First+s]
			out.entered += seat.Entered.Load()
			out.counted += seat.Counted.Load()
			out.longest = max(out.longest, seat.Longest.Load())
			out.lost += seat.Lost.Load()
			out.shares = append(out.shares, seat.Counted.Load())
			out.turns[i] += seat.Turns.Load()
		}
	}
	if out.final, err = worker.ReadNumber(files[0]); err != nil {
		return nil, err
	}
	for _, err := range t.Errors {
		out.errors = append(out.errors, err.Error())
	}
	out.took = monotonic.Now().Sub(began)
	return out, nil
}

// bounded is a check of a number against what it must be.
func bounded(id, title string, ok bool, format string, args ...any) Check {
	c := Check{ID: id, Title: title, Cases: 1, Note: fmt.Sprintf(format, args...)}
	if !ok {
		c.Violations = 1
	}
	return c
}

// checks are those of every contest.
func (b *bout) checks(fenced bool) []Check {
	checks := []Check{
		{
			ID: "V2", Title: history.TitleData, Cases: int(b.entered), Violations: int(max(b.entered-b.final, b.final-b.entered)),
			Note: fmt.Sprintf("%d updates, %d in the file", b.entered, b.final),
		},
		{ID: "V3", Title: history.TitleOverlap, Cases: int(b.entered), Violations: int(b.overlaps)},
	}
	if fenced {
		checks = append(checks, Check{ID: "V1", Title: history.TitleTokens, Cases: int(b.entered), Violations: int(b.disorder)})
	}
	return checks
}

func (b *bout) figures() []Figure {
	return []Figure{
		{Name: "leases", Value: float64(b.counted)},
		{Name: "leases a second", Value: float64(b.counted) / b.lasted.Seconds()},
		{Name: "handoffs", Value: float64(b.handoffs)},
		{Name: "handoffs a second", Value: float64(b.handoffs) / b.lasted.Seconds()},
		{Name: "longest wait", Value: float64(b.longest) / 1e6, Unit: "ms"},
		{Name: "Jain", Value: history.Jain(b.shares)},
		{Name: "lost", Value: float64(b.lost)},
	}
}

// runHandoffs runs the plain use of a lock, as fast as it goes: no faults, no fence, a number in a
// plain file.
func runHandoffs(ctx context.Context, c *conductor) ([]Trial, error) {
	counts := make([]int, c.Processes)
	for i := range counts {
		counts[i] = c.Goroutines
	}
	setup := fmt.Sprintf("%d processes × %d goroutines, 1 name, no faults, a number in a plain file", c.Processes, c.Goroutines)
	c.say("%s for %v", Handoffs, c.For)
	b, err := hold(ctx, c, worker.Job{Guard: worker.Unfenced, Tx: c.tx, Tries: c.tries}, counts, c.For)
	if err != nil {
		return nil, err
	}
	t := Trial{Scenario: Handoffs, Setup: setup, Took: Duration(b.took), Figures: b.figures(), Checks: b.checks(c.tokens()), Errors: b.errors}
	if c.Handoffs > 0 {
		t.Checks = append(t.Checks, bounded("handoffs", "from one process to another", b.handoffs >= int64(c.Handoffs), "%d, at least %d", b.handoffs, c.Handoffs))
	}
	if c.traits.Has()&driver.Ordered != 0 {
		t.Checks = append(t.Checks, bounded("fairness", "nobody is starved", history.Jain(b.shares) >= c.Fairness, "Jain's index %.4f, at least %v", history.Jain(b.shares), c.Fairness))
	}
	d := min(c.For/2, 2*time.Second)
	b, err = hold(ctx, c, worker.Job{Guard: worker.Unlocked}, counts, d)
	if err != nil {
		return nil, err
	}
	return []Trial{t, {
		Scenario: Handoffs, Twin: withoutLock.name, MustFail: "V2", MayFail: []string{"V3"}, Setup: setup, Took: Duration(b.took),
		Figures: b.figures(), Checks: b.checks(false), Errors: b.errors,
	}}, nil
}

// runTurns runs a lone goroutine against a hundred in another process. Leases last a millisecond:
// that is long enough for the lone one to stand in line again before the other process's turn is
// over, also on a machine that is busy.
//
// Its negative control has no line: workers try again and again, and then a hundred get more than
// one.
func runTurns(ctx context.Context, c *conductor) ([]Trial, error) {
	c.say("%s for %v", Turns, c.For)
	t, err := turns(ctx, c, false, c.For)
	if err != nil || c.traits.Has()&driver.Ordered == 0 {
		return []Trial{t}, err
	}
	w, err := turns(ctx, c, true, min(c.For/2, 2*time.Second))
	w.Twin, w.MustFail = "without the line", "turns"
	return []Trial{t, w}, err
}

// turns lets one goroutine and a hundred of another process have a name for d.
func turns(ctx context.Context, c *conductor, tries bool, d time.Duration) (Trial, error) {
	b, err := hold(ctx, c, worker.Job{Guard: worker.Unfenced, Hold: time.Millisecond, Turns: true, Tries: tries}, []int{1, 100}, d)
	if err != nil {
		return Trial{}, err
	}
	t := Trial{
		Scenario: Turns, Setup: "2 processes, of 1 and of 100 goroutines, 1 name, leases of 1 ms", Took: Duration(b.took),
		Figures: append(b.figures(), Figure{Name: "turns of the one", Value: float64(b.turns[0])}, Figure{Name: "turns of the hundred", Value: float64(b.turns[1])}),
		Checks:  b.checks(c.tokens()), Errors: b.errors,
	}
	if c.traits.Has()&driver.Ordered != 0 {
		ratio := float64(b.turns[0]) / float64(max(b.turns[1], 1))
		t.Checks = append(t.Checks, bounded("turns", "the processes take turns", ratio >= 0.9 && ratio <= 1.1,
			"%d : %d, %d changes; want within 10 %%", b.turns[0], b.turns[1], b.changes))
	}
	return t, nil
}
