package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// freePair is one goroutine that locks and unlocks what nobody else wants.
type freePair struct{ adapter string }

func (f freePair) run(ctx context.Context, s scale) (_ sample, err error) {
	at, err := openSite(ctx, f.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	w, err := startWorker(ctx, job{
		Task: "pair", Adapter: f.adapter, Count: int(s.window.Milliseconds()),
		Place: at.place(1, 1),
	}, nil)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	var took [2]float64
	if err := w.result(&took); err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return sample{pairMedian: took[0], pairSlow: took[1]}, nil
}

// pair is the task of freePair's worker: Count milliseconds of pairs, after a
// tenth of that to warm up. It answers median and 99th percentile in
// microseconds.
func pair(ctx context.Context, j job, _ *bufio.Reader, out io.Writer) error {
	l, err := openLocker(ctx, j)
	if err != nil {
		return err
	}
	window := time.Duration(j.Count) * time.Millisecond
	start := now() + window.Nanoseconds()/10
	end := start + window.Nanoseconds()
	m := l.mutex("bench/free")
	took := make([]float64, 0, 1<<20)
	for {
		before := now()
		if before > end && len(took) > 0 || len(took) == cap(took) { // on a busy machine the window may pass without a pair
			break
		}
		unlock, err := m.lock(ctx)
		if err != nil {
			return err
		}
		if err := unlock(); err != nil {
			return err
		}
		if before >= start {
			took = append(took, float64(now()-before)/1e3)
		}
	}
	if err := l.close(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode([2]float64{quantile(took, 0.5), quantile(took, 0.99)})
}
