//go:build linux || darwin

package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// bout is one contest: what its workers left on the board.
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
func (c *conductor) hold(ctx context.Context, j job, counts []int, d time.Duration) (*bout, error) {
	dir, names, files, err := c.place(1)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "board")
	b, err := openBoard(path)
	if err != nil {
		return nil, err
	}
	defer b.close()
	began := now()
	jobs := make([]job, len(counts))
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
	t, err := newTeam(dir, jobs)
	if err != nil {
		return nil, err
	}
	defer t.disband()
	if err := t.await(ctx); err != nil {
		return nil, err
	}
	if patient := c.patient && j.Guard != unlocked; patient {
		b.schedule(longestContest)
		for now().sub(instant(b.start.Load())) < longestContest && b.handoffs.Load() < int64(c.Handoffs) && t.up() && ctx.Err() == nil {
			pause(100*time.Millisecond, ctx.Done())
		}
		b.end.Store(int64(now()))
	} else {
		b.schedule(d)
		pause(d, ctx.Done())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.finish(now().add(30 * time.Second))
	out := &bout{
		lasted:   instant(b.end.Load()).sub(instant(b.start.Load())),
		handoffs: b.handoffs.Load(), overlaps: b.overlaps.Load(), disorder: b.disorder.Load(), changes: b.changes.Load(),
		turns: make([]int64, len(counts)),
	}
	for i, n := range counts {
		for s := range n {
			seat := &b.seats[jobs[i].First+s]
			out.entered += seat.entered.Load()
			out.counted += seat.counted.Load()
			out.longest = max(out.longest, seat.longest.Load())
			out.lost += seat.lost.Load()
			out.shares = append(out.shares, seat.counted.Load())
			out.turns[i] += seat.turns.Load()
		}
	}
	if out.final, err = readNumber(files[0]); err != nil {
		return nil, err
	}
	for _, err := range t.errors {
		out.errors = append(out.errors, err.Error())
	}
	out.took = now().sub(began)
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
			ID: "V2", Title: titleData, Cases: int(b.entered), Violations: int(max(b.entered-b.final, b.final-b.entered)),
			Note: fmt.Sprintf("%d updates, %d in the file", b.entered, b.final),
		},
		{ID: "V3", Title: titleOverlap, Cases: int(b.entered), Violations: int(b.overlaps)},
	}
	if fenced {
		checks = append(checks, Check{ID: "V1", Title: titleTokens, Cases: int(b.entered), Violations: int(b.disorder)})
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
		{Name: "Jain", Value: jain(b.shares)},
		{Name: "lost", Value: float64(b.lost)},
	}
}

// runHandoffs is the plain use of a lock, as fast as it goes: no faults, no fence, a number in a plain file.
func (c *conductor) runHandoffs(ctx context.Context) ([]Trial, error) {
	counts := make([]int, c.Processes)
	for i := range counts {
		counts[i] = c.Goroutines
	}
	setup := fmt.Sprintf("%d processes × %d goroutines, 1 name, no faults, a number in a plain file", c.Processes, c.Goroutines)
	c.say("%s for %v", Handoffs, c.For)
	b, err := c.hold(ctx, job{Guard: unfenced, Tx: c.tx, Tries: c.tries}, counts, c.For)
	if err != nil {
		return nil, err
	}
	t := Trial{Scenario: Handoffs, Setup: setup, Took: Duration(b.took), Figures: b.figures(), Checks: b.checks(c.tokens()), Errors: b.errors}
	if c.Handoffs > 0 {
		t.Checks = append(t.Checks, bounded("handoffs", "from one process to another", b.handoffs >= int64(c.Handoffs), "%d, at least %d", b.handoffs, c.Handoffs))
	}
	if c.traits.Has()&driver.Ordered != 0 {
		t.Checks = append(t.Checks, bounded("fairness", "nobody is starved", jain(b.shares) >= c.Fairness, "Jain's index %.4f, at least %v", jain(b.shares), c.Fairness))
	}
	d := min(c.For/2, 2*time.Second)
	b, err = c.hold(ctx, job{Guard: unlocked}, counts, d)
	if err != nil {
		return nil, err
	}
	return []Trial{t, {
		Scenario: Handoffs, Twin: withoutLock.name, MustFail: "V2", MayFail: []string{"V3"}, Setup: setup, Took: Duration(b.took),
		Figures: b.figures(), Checks: b.checks(false), Errors: b.errors,
	}}, nil
}

// runTurns is a lone goroutine against a hundred in another process. Leases last a millisecond: that is long enough for
// the lone one to stand in line again before the other process's turn is over, also on a machine that is busy.
//
// Its twin has no line: who wants the name tries again and again, and then a hundred get more than one.
func (c *conductor) runTurns(ctx context.Context) ([]Trial, error) {
	c.say("%s for %v", Turns, c.For)
	t, err := c.turns(ctx, false, c.For)
	if err != nil || c.traits.Has()&driver.Ordered == 0 {
		return []Trial{t}, err
	}
	w, err := c.turns(ctx, true, min(c.For/2, 2*time.Second))
	w.Twin, w.MustFail = "without the line", "turns"
	return []Trial{t, w}, err
}

// turns lets one goroutine and a hundred of another process have a name for d.
func (c *conductor) turns(ctx context.Context, tries bool, d time.Duration) (Trial, error) {
	b, err := c.hold(ctx, job{Guard: unfenced, Hold: time.Millisecond, Turns: true, Tries: tries}, []int{1, 100}, d)
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
