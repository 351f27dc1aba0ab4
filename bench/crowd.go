package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// crowd is goroutines of one process that each lock and unlock a name of
// their own: nobody waits for a lock, everybody for the same connection.
type crowd struct {
	adapter    string
	goroutines int
}

// crowded is what the worker measured in the window.
type crowded struct{ Pairs, CPU int64 }

func (c crowd) run(ctx context.Context, s scale) (_ sample, err error) {
	at, err := openSite(ctx, c.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	b, path, err := at.board()
	if err != nil {
		return nil, err
	}
	defer b.close()
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
	if r.Pairs == 0 {
		return nil, errors.New("bench: no pair was made")
	}
	n := float64(r.Pairs)
	return sample{
		pairs:      n / s.window.Seconds(),
		cpuEach:    float64(r.CPU) / 1e3 / n,
		serverEach: did.cpu * 1e6 / n,
		packets:    did.packets() / n,
	}, nil
}

// crowdTask is the task of crowd's worker.
func crowdTask(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
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
	var res crowded
	var mu sync.Mutex
	var failure error
	var all sync.WaitGroup
	for i := range j.Count {
		all.Go(func() {
			n, err := pairUp(ctx, l.mutex("bench/crowd/"+strconv.Itoa(i)), b)
			mu.Lock()
			defer mu.Unlock()
			res.Pairs += n
			failure = errors.Join(failure, err)
		})
	}
	sleepUntil(b.start.Load())
	before := cpuTime()
	sleepUntil(b.end.Load())
	res.CPU = cpuTime() - before
	all.Wait()
	if err := errors.Join(failure, l.close()); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(res)
}

// pairUp locks and unlocks until the window closes, and counts the pairs that
// ended in it.
func pairUp(ctx context.Context, m mutex, b *board) (pairs int64, err error) {
	for {
		unlock, err := m.lock(ctx)
		if err != nil {
			return pairs, err
		}
		if err := unlock(); err != nil {
			return pairs, err
		}
		at := now()
		if b.counts(at) {
			pairs++
		}
		if at >= b.end.Load() {
			return pairs, nil
		}
	}
}
