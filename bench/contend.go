package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
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
	Waited  int64   // by those that are counted, in nanoseconds
	Longest int64   // wait that ended within the window, or what of it had passed by then, in nanoseconds
	CPU     int64   // of the window, in nanoseconds
	Calls   int64   // operations of the store for all that entered; -1 = not known

	Requests int64 // to the server for all that entered; 0 = not known

	Grants, Raised uint64 // of the store, ever; 0 = not known

	Stranded int // goroutines that still waited when nobody had wanted the lock for a while

	Waits [][]wait // by goroutine, where the job asks for them
}

// wait is when the lock was asked for, and when it was held, by now.
type wait [2]int64

// contestName is the lock that everybody wants.
const contestName = "bench/contest"

// run holds the contest once.
func (c contest) run(ctx context.Context, s scale) (_ sample, err error) {
	at, b, path, err := openArena(ctx, c.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close(), at.close()) }()

	workers, err := c.assemble(ctx, at, job{Board: path})
	defer stopAll(workers)
	if err != nil {
		return nil, err
	}
	b.schedule(s.warm, s.window)
	if err := sayAll(workers, "go"); err != nil {
		return nil, err
	}
	did, err := at.watch(b)
	if err != nil {
		return nil, err
	}
	results, err := collect(workers)
	if err != nil {
		return nil, err
	}
	out, err := c.judge(b, results, s.window)
	each := out[acquisitions] * s.window.Seconds()
	if each > 0 && (at.postgres != nil || at.etcd != nil || at.zookeeper != nil) {
		out[serverEach] = did.cpu * 1e6 / each
	}
	if each > 0 && len(at.redis) > 0 {
		out[scriptsEach] = did.scripts / each
		out[scriptsPer32] = did.scripts * 32 / each
		out[packets] = did.packets() / each
		out[serverEach] = did.cpu * 1e6 / each
		out[scriptTime] = did.scripted / each
	}
	return out, err
}

// assemble starts the processes of a contest, which all get the job j, and
// returns when they are ready. On an error the workers returned are those that
// did start.
func (c contest) assemble(ctx context.Context, at *site, j job) ([]*worker, error) {
	j.Task, j.Adapter, j.Count = "contend", c.adapter, c.goroutines
	workers, err := startTeam(ctx, c.processes, func(i int) job {
		one := j
		one.Place, one.First = at.place(i+1, c.processes), i*c.goroutines+1
		return one
	})
	for _, w := range workers {
		if err == nil {
			err = w.hear("ready")
		}
	}
	return workers, err
}

// collect hears what the workers measured, and sees them end.
func collect(workers []*worker) ([]contestant, error) {
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
	return results, nil
}

// judge checks exclusion and turns what the workers measured into figures.
func (c contest) judge(b board, results []contestant, window time.Duration) (sample, error) {
	var entered, counted, waited, longest, cpu, calls, requests int64
	var grants, raised uint64
	stranded := 0
	var shares []int64
	for _, r := range results {
		entered += r.Entered
		for _, n := range r.Counted {
			counted += n
			shares = append(shares, n)
		}
		waited += r.Waited
		longest = max(longest, r.Longest)
		requests += r.Requests
		grants += r.Grants
		raised += r.Raised
		cpu += r.CPU
		calls += r.Calls
		stranded += r.Stranded
	}
	if err := b.verdict(entered); err != nil {
		return nil, err
	}
	if stranded > 0 {
		return nil, fmt.Errorf("bench: %d goroutines still waited for a lock that nobody had held for %v", stranded, stranding)
	}
	if entered == 0 {
		return nil, errors.New("bench: nobody got the lock")
	}
	out := sample{
		acquisitions: float64(counted) / window.Seconds(),
		handoffs:     float64(b.Handoffs.Load()) / window.Seconds(),
		jain:         jainIndex(shares),
		longestWait:  float64(longest) / 1e6,
		mostToLeast:  float64(slices.Max(shares)) / float64(max(slices.Min(shares), 1)),
	}
	if counted > 0 {
		out[cpuEach] = float64(cpu) / 1e3 / float64(counted)
	}
	if waited > 0 {
		out[meanWait] = float64(waited) / 1e6 / float64(counted)
		out[longestToMean] = out[longestWait] / out[meanWait]
	}
	if grants > 0 {
		out[raises] = float64(raised) * 100 / float64(grants)
	}
	if requests > 0 {
		out[requestsEach] = float64(requests) / float64(entered)
	}
	if calls >= 0 {
		out[callsPer32] = float64(calls) * 32 / float64(entered)
	}
	return out, nil
}

// stranding is how long after the window a worker waits for its goroutines.
const stranding = 3 * time.Second

// visitor is a goroutine of a contest. Asked is stored last before it waits,
// so that whoever reads it sees the rest, even if the wait never ends.
type visitor struct {
	asked                             atomic.Int64
	entered, counted, waited, longest int64

	keeps bool // each wait
	waits []wait
}

// contend is the task of a contest's worker.
func contend(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
	b, l, err := enterContest(ctx, j, in, out)
	if err != nil {
		return err
	}

	visitors := make([]*visitor, j.Count)
	ends := make(chan error, j.Count)
	for i := range visitors {
		v := &visitor{keeps: j.Waits}
		v.asked.Store(now())
		visitors[i] = v
		go func() { ends <- v.visit(ctx, l.mutex(contestName), b, int64(j.Place.Process), int64(j.First+i)) }()
	}
	sleepUntil(b.Start.Load())
	before := cpuTime()
	sleepUntil(b.End.Load())
	res := contestant{Calls: -1, CPU: cpuTime() - before}
	var failure error
	res.Stranded, failure = gather(ends, j.Count)
	for _, v := range visitors {
		res.Longest = max(res.Longest, b.End.Load()-v.asked.Load(), v.longest) // the last wait outlasted the window
		res.Entered += v.entered
		res.Counted = append(res.Counted, v.counted)
		res.Waited += v.waited
		if v.keeps {
			res.Waits = append(res.Waits, v.waits)
		}
	}
	if g, ok := l.(grantor); ok {
		res.Grants, res.Raised = g.grants()
	}
	res.Requests = requestsOf(l)
	if counted, ok := l.(meter); ok {
		res.Calls, _ = counted.calls()
	}
	if res.Stranded == 0 {
		failure = errors.Join(failure, l.close())
	}
	if failure != nil {
		return failure
	}
	return json.NewEncoder(out).Encode(res)
}

// gather collects how n goroutines ended, and says how many have not when
// the window has been over for long.
func gather(ends <-chan error, n int) (stranded int, failure error) {
	late := time.NewTimer(stranding)
	defer late.Stop()
	for ; n > 0; n-- {
		select {
		case err := <-ends:
			failure = errors.Join(failure, err)
		case <-late.C:
			return n, failure
		}
	}
	return 0, failure
}

// visit takes the lock again and again until the window closes. A lock that
// comes later is given back unused.
func (v *visitor) visit(ctx context.Context, m mutex, b board, process, goroutine int64) error {
	end := b.End.Load()
	tokens, _ := m.(tokened)
	for asked := now(); asked < end; {
		v.asked.Store(asked)
		var token uint64
		var unlock func() error
		var err error
		if tokens != nil {
			token, unlock, err = tokens.lockToken(ctx)
		} else {
			unlock, err = m.lock(ctx)
		}
		if errors.Is(err, errOver) {
			return nil
		}
		if err != nil {
			return err
		}
		got := now()
		if v.keeps {
			v.waits = append(v.waits, wait{asked, got})
		}
		if got >= end {
			return unlock()
		}
		counts := b.counts(got)
		b.Enter(process, goroutine, counts)
		if tokens != nil {
			b.Draw(token)
		}
		v.entered++
		if counts {
			v.counted++
			v.waited += got - asked
			v.longest = max(v.longest, got-asked)
		}
		b.Leave(goroutine)
		asked = now()
		if err := unlock(); err != nil {
			return err
		}
	}
	return nil
}
