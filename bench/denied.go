package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlock-go/interlock"
)

// denied is one goroutine that tries to get a lock of which another client of
// its process is the holder, while some of the masters are stopped.
type denied struct{ stopped int }

func (d denied) run(ctx context.Context, s scale) (_ sample, err error) {
	at, err := openSite(ctx, "redlock")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	w, err := startWorker(ctx, job{Task: "denied", Adapter: "redlock", Count: int(s.window.Milliseconds()), Place: at.place(1, 1)}, nil)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	if err := w.hear("held"); err != nil {
		return nil, err
	}
	for _, m := range at.redis[:d.stopped] {
		defer func() { err = errors.Join(err, m.Resume()) }()
		if err := m.Pause(); err != nil {
			return nil, err
		}
	}
	if err := w.say("go"); err != nil {
		return nil, err
	}
	var took [2]float64
	if err := w.result(&took); err != nil {
		return nil, err
	}
	return sample{tryMedian: took[0], trySlow: took[1]}, nil
}

// tries is the task of denied's worker: Count milliseconds of tries, after as
// long to warm up, in which it waits for the stopped masters once or twice.
// It answers median and 99th percentile in microseconds.
func tries(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
	holder, err := openLocker(ctx, j)
	if err != nil {
		return err
	}
	if _, err := holder.mutex("bench/denied").lock(ctx); err != nil {
		return err
	}
	l, err := openLocker(ctx, j)
	if err != nil {
		return err
	}
	m := l.(*redlocked).client.Mutex("bench/denied")
	fmt.Fprintln(out, "held")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	window := time.Duration(j.Count) * time.Millisecond
	start := now() + window.Nanoseconds()
	took := make([]float64, 0, 1<<20)
	for {
		before := now()
		if before > start+window.Nanoseconds() && len(took) > 0 || len(took) == cap(took) {
			break
		}
		if _, err := m.TryLock(ctx); !errors.Is(err, interlock.ErrHeld) {
			return fmt.Errorf("bench: a try for a lock that is held: %w, want %w", err, interlock.ErrHeld)
		}
		if before >= start {
			took = append(took, float64(now()-before)/1e3)
		}
	}
	return json.NewEncoder(out).Encode([2]float64{quantile(took, 0.5), quantile(took, 0.99)})
}
