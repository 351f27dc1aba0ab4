package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// contest is goroutines of one or several processes that all want one lock
// all the time. A holder does nothing but to sign the board.
type contest struct {
	adapter    string
	processes  int
	goroutines int // of each process
}

// contestant is what a worker measured.
type contestant struct {
	Entered int64   // ever
	Counted []int64 // within the window, by goroutine
	Longest int64   // wait that ended within the window, in nanoseconds
	CPU     int64   // of the window, in nanoseconds
	Calls   int64   // operations of the store for all that entered; -1 = not known
}

// contestName is the lock that everybody wants.
const contestName = "bench/contest"

// run holds the contest once.
func (c contest) run(ctx context.Context, s scale) (sample, error) {
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	store := filepath.Join(dir, "store")
	if err := os.Mkdir(store, 0o700); err != nil {
		return nil, err
	}
	boardPath := filepath.Join(dir, "board")
	b, err := createBoard(boardPath)
	if err != nil {
		return nil, err
	}
	defer b.close()

	workers, err := startTeam(ctx, c.processes, func(i int) job {
		return job{
			Task: "contend", Adapter: c.adapter, Board: boardPath,
			Place: place{Dir: store, Process: i + 1},
			First: i*c.goroutines + 1, Count: c.goroutines,
		}
	})
	defer stopAll(workers)
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		if err := w.hear("ready"); err != nil {
			return nil, err
		}
	}
	b.schedule(s.warm, s.window)
	for _, w := range workers {
		if err := w.say("go"); err != nil {
			return nil, err
		}
	}
	results := make([]contestant, len(workers))
	for i, w := range workers {
		if err := w.result(&results[i]); err != nil {
			return nil, err
		}
	}
	for _, w := range workers {
		if err := w.finish(); err != nil {
			return nil, err
		}
	}
	return c.judge(b, results, s.window)
}

// judge checks exclusion and turns what the workers measured into figures.
func (c contest) judge(b *board, results []contestant, window time.Duration) (sample, error) {
	var entered, counted, longest, cpu, calls int64
	var shares []int64
	for _, r := range results {
		entered += r.Entered
		for _, n := range r.Counted {
			counted += n
			shares = append(shares, n)
		}
		longest = max(longest, r.Longest)
		cpu += r.CPU
		calls += r.Calls
	}
	if err := b.verdict(entered); err != nil {
		return nil, err
	}
	if counted == 0 {
		return nil, errors.New("bench: nobody got the lock")
	}
	out := sample{
		acquisitions: float64(counted) / window.Seconds(),
		handoffs:     float64(b.handoffs.Load()) / window.Seconds(),
		jain:         jainIndex(shares),
		longestWait:  float64(longest) / 1e6,
		cpuEach:      float64(cpu) / 1e3 / float64(counted),
	}
	if calls >= 0 {
		out[callsPer32] = float64(calls) * 32 / float64(entered)
	}
	return out, nil
}

// contend is the task of a contest's worker.
func contend(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
	b, err := openBoard(j.Board)
	if err != nil {
		return err
	}
	l, err := openLocker(ctx, j)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}

	m := l.mutex(contestName)
	res := contestant{Counted: make([]int64, j.Count), Calls: -1}
	var mu sync.Mutex
	var failure error
	var all sync.WaitGroup
	for i := range j.Count {
		all.Go(func() {
			entered, counted, longest, err := visit(ctx, m, b, int64(j.Place.Process), int64(j.First+i))
			mu.Lock()
			defer mu.Unlock()
			res.Entered += entered
			res.Counted[i] = counted
			res.Longest = max(res.Longest, longest)
			failure = errors.Join(failure, err)
		})
	}
	sleepUntil(b.start.Load())
	before := cpuTime()
	sleepUntil(b.end.Load())
	res.CPU = cpuTime() - before
	all.Wait()
	if counted, ok := l.(meter); ok {
		res.Calls, _ = counted.calls()
	}
	if err := errors.Join(failure, l.close()); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(res)
}

// visit takes the lock again and again until the window closes.
func visit(ctx context.Context, m mutex, b *board, process, goroutine int64) (entered, counted, longest int64, err error) {
	end := b.end.Load()
	for asked := now(); asked < end; {
		unlock, err := m.lock(ctx)
		if errors.Is(err, errOver) {
			return entered, counted, longest, nil
		}
		if err != nil {
			return entered, counted, longest, err
		}
		got := now()
		counts := b.counts(got)
		b.enter(process, goroutine, counts)
		entered++
		if counts {
			counted++
			longest = max(longest, got-asked)
		}
		b.leave(goroutine)
		asked = now()
		if err := unlock(); err != nil {
			return entered, counted, longest, err
		}
	}
	return entered, counted, longest, nil
}

// startTeam starts n workers with what their adapter lets them inherit. On an
// error the workers returned are those that did start.
func startTeam(ctx context.Context, n int, jobOf func(i int) job) ([]*worker, error) {
	a, err := findAdapter(jobOf(0).Adapter)
	if err != nil {
		return nil, err
	}
	files := make([]*os.File, n)
	if a.files != nil {
		if files, err = a.files(n); err != nil {
			return nil, err
		}
	}
	defer func() {
		for _, f := range files {
			f.Close() // the workers have their own
		}
	}()
	var team []*worker
	for i := range n {
		w, err := startWorker(ctx, jobOf(i), files[i])
		if err != nil {
			return team, err
		}
		team = append(team, w)
	}
	return team, nil
}

func stopAll(team []*worker) {
	for _, w := range team {
		w.stop()
	}
}
