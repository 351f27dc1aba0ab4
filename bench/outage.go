package main

import (
	"context"
	"errors"
	"math"
	"time"
)

// outage is a contest during which some of the masters are stopped for a
// while: their connections stay open, and nothing is answered.
type outage struct {
	contest
	stopped int
}

// fading is how long after a majority has been stopped a process may still
// pass on within itself what it holds, and answers that were under way may
// arrive.
const fading = 100 * time.Millisecond

// run has the contest go on undisturbed for as long as it is watched after
// the stop: rest without the masters and window with them again.
func (o outage) run(ctx context.Context, s scale) (_ sample, err error) {
	at, b, path, err := openArena(ctx, o.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close(), at.close()) }()
	workers, err := o.assemble(ctx, at, job{Board: path, Waits: true})
	defer stopAll(workers)
	if err != nil {
		return nil, err
	}
	half := s.rest + s.window
	b.schedule(s.warm, 2*half)
	if err := sayAll(workers, "go"); err != nil {
		return nil, err
	}
	sleepUntil(b.Start.Load() + half.Nanoseconds())
	stop, resume, err := at.stopMasters(o.stopped, s.rest)
	if err != nil {
		return nil, err
	}
	results, err := collect(workers)
	if err != nil {
		return nil, err
	}
	out, err := o.judge(b, results, 2*half)
	if err != nil {
		return nil, err
	}
	watched := waits{start: b.Start.Load(), stop: stop, resume: resume}
	for _, r := range results {
		for _, w := range r.Waits {
			watched.take(w)
		}
	}
	watched.tell(out, o.stopped <= masters/2)
	return out, nil
}

// stopMasters stops the first n masters of the site for a while, and says
// when that began and ended.
func (s *site) stopMasters(n int, during time.Duration) (stop, resume int64, err error) {
	stop = now()
	for _, m := range s.redis[:n] {
		err = errors.Join(err, m.Pause())
	}
	sleepUntil(stop + during.Nanoseconds())
	resume = now()
	for _, m := range s.redis[:n] {
		err = errors.Join(err, m.Resume())
	}
	return stop, resume, err
}

// waits are those of all goroutines of an outage, told apart by whether they
// were over when the masters were stopped.
type waits struct {
	start, stop, resume int64

	usual, then      []float64 // in milliseconds
	during, unbacked int       // acquisitions while the masters were stopped, and of these those after the fading
	first, last      int64     // of the goroutines, when the first and the last of them held again
	missing          bool      // a goroutine never did
}

// take adds what one goroutine has waited.
func (w *waits) take(all []wait) {
	again := int64(math.MaxInt64)
	for _, one := range all {
		asked, got := one[0], one[1]
		took := float64(got-asked) / 1e6
		switch {
		case got < w.start:
		case got < w.stop:
			w.usual = append(w.usual, took)
		default:
			w.then = append(w.then, took)
		}
		if got >= w.stop && got < w.resume {
			w.during++
			if got >= w.stop+fading.Nanoseconds() {
				w.unbacked++
			}
		}
		if got >= w.resume {
			again = min(again, got)
		}
	}
	w.missing = w.missing || again == math.MaxInt64
	w.last = max(w.last, again)
	if w.first == 0 || again < w.first {
		w.first = again
	}
}

// tell adds the figures to out.
func (w *waits) tell(out sample, majority bool) {
	if len(w.usual) > 0 && len(w.then) > 0 {
		out[usualWait], out[usualLongest] = quantile(w.usual, 0.5), quantile(w.usual, 1)
		out[stoppedWait], out[stoppedLongest] = quantile(w.then, 0.5), quantile(w.then, 1)
		out[aboveUsual] = max(0, out[stoppedLongest]-out[usualLongest])
	}
	out[usualRate] = float64(len(w.usual)) * 1e9 / float64(w.stop-w.start)
	out[stoppedRate] = float64(w.during) * 1e9 / float64(w.resume-w.stop)
	if !majority {
		out[unbacked] = float64(w.unbacked)
	}
	if !w.missing {
		out[firstAgain], out[allAgain] = float64(w.first-w.resume)/1e6, float64(w.last-w.resume)/1e6
	}
}
