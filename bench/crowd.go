package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
)

// crowd is goroutines of one process that each lock and unlock a name of
// their own: nobody waits for a lock, everybody for the same connection.
type crowd struct {
	adapter    string
	goroutines int
}

// crowded is what the worker measured in the window.
type crowded struct {
	Pairs, CPU int64
	Ever       int64 // pairs, before and after the window as well
	Stranded   int   // goroutines that still waited, long after the window, for a lock that nobody else wants
}

func (c crowd) run(ctx context.Context, s scale) (_ sample, err error) {
	at, b, path, err := openArena(ctx, c.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close(), at.close()) }()
	w, err := startWorker(ctx, job{
		Task: "crowd", Adapter: c.adapter, Board: path, Count: c.goroutines, Place: at.place(1, 1),
	}, nil)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	if err := w.hear("ready"); err != nil {
		return nil, err
	}
	b.schedule(s.warm, s.window)
	if err := w.say("go"); err != nil {
		return nil, err
	}
	did, err := at.watch(b)
	if err != nil {
		return nil, err
	}
	var r crowded
	if err := w.result(&r); err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	if r.Stranded > 0 {
		return nil, fmt.Errorf("bench: %d goroutines did not get a free lock in %v", r.Stranded, stranding)
	}
	if r.Ever == 0 {
		return nil, errors.New("bench: no pair was made")
	}
	n := float64(r.Pairs)
	out := sample{pairs: n / s.window.Seconds()}
	if n > 0 {
		out[cpuEach] = float64(r.CPU) / 1e3 / n
		out[serverEach] = did.cpu * 1e6 / n
		out[scriptTime] = did.scripted / n
		out[packets] = did.packets() / n
	}
	return out, nil
}

// crowdTask is the task of crowd's worker.
func crowdTask(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
	b, l, err := enterContest(ctx, j, in, out)
	if err != nil {
		return err
	}
	var made, ever atomic.Int64
	ends := make(chan error, j.Count)
	for i := range j.Count {
		go func() { ends <- pairUp(ctx, l.mutex("bench/crowd/"+strconv.Itoa(i)), b, &made, &ever) }()
	}
	sleepUntil(b.Start.Load())
	before := cpuTime()
	sleepUntil(b.End.Load())
	res := crowded{CPU: cpuTime() - before, Pairs: made.Load()}
	var failure error
	if res.Stranded, failure = gather(ends, j.Count); res.Stranded == 0 {
		failure = errors.Join(failure, l.close())
	}
	if failure != nil {
		return failure
	}
	res.Ever = ever.Load()
	return json.NewEncoder(out).Encode(res)
}

// pairUp locks and unlocks until the window closes. Of the pairs that it ever
// makes, those made are the ones that ended in the window.
func pairUp(ctx context.Context, m mutex, b board, made, ever *atomic.Int64) error {
	for {
		unlock, err := m.lock(ctx)
		if err != nil {
			return err
		}
		if err := unlock(); err != nil {
			return err
		}
		ever.Add(1)
		at := now()
		if b.counts(at) {
			made.Add(1)
		}
		if at >= b.End.Load() {
			return nil
		}
	}
}
