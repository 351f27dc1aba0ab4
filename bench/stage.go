package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stage is one worker process and one site that the contenders of a row
// share. It is for figures that lie so close together that they would drown
// in where the kernel happens to put a process and its server.
type stage struct {
	adapters []string
	awake    bool // a process of the lowest priority keeps a core from idling
	at       *site
	w        *worker
	waker    *worker
}

func (s *stage) open(ctx context.Context) (err error) {
	if s.at, err = openSite(ctx, s.adapters[0]); err != nil {
		return err
	}
	if s.awake {
		if s.waker, err = startWorker(ctx, job{Task: "stay awake"}, nil); err != nil {
			return err
		}
		if err := s.waker.hear("ready"); err != nil {
			return err
		}
	}
	s.w, err = startWorker(ctx, job{Task: "stage", Adapters: s.adapters, Place: s.at.place(1, 1)}, nil)
	if err != nil {
		return err
	}
	return s.w.hear("ready")
}

func (s *stage) close() error {
	if s.w != nil {
		late := time.AfterFunc(stranding, s.w.kill)
		if s.w.say(stageEnd) == nil { // so that it leaves its profile
			_ = s.w.finish()
		}
		late.Stop()
		s.w.stop()
	}
	if s.waker != nil {
		s.waker.stop()
	}
	if s.at == nil {
		return nil
	}
	return s.at.close()
}

// stayAwake is the task of a stage's waker: it runs where nothing else wants
// to, until its parent ends it. Waking an idle core can take longer than a
// pair does.
func stayAwake(_ context.Context, _ job, _ *bufio.Reader, out io.Writer) error {
	runtime.LockOSThread()
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	for { //nolint:staticcheck // it spins until its parent kills it
	}
}

// stagedPair is a round of pairs on a stage: one goroutine locks and unlocks
// what nobody else wants.
type stagedPair struct {
	on      *stage
	adapter string
}

// stageEnd is what a stage's worker hears last.
const stageEnd = "end"

// Pairs of a round; the first few are not counted.
const (
	roundPairs = 150
	roundWarm  = 10
)

func (p stagedPair) run(ctx context.Context, _ scale) (sample, error) {
	defer context.AfterFunc(ctx, p.on.w.kill)()
	before, err := p.on.at.look()
	if err != nil {
		return nil, err
	}
	if err := p.on.w.say(p.adapter); err != nil {
		return nil, err
	}
	var took [4]float64
	if err := p.on.w.result(&took); err != nil {
		return nil, err
	}
	after, err := p.on.at.look()
	if err != nil {
		return nil, err
	}
	did := after.since(before)
	const all = roundWarm + roundPairs
	out := sample{
		pairMedian: took[0], pairSlow: took[1], cpuEach: took[2],
		packets: did.packets() / all, scriptTime: did.scripted / all, serverEach: did.cpu * 1e6 / all,
	}
	out[bothEach] = out[cpuEach] + out[serverEach]
	if took[3] > 0 { // or else it is not known
		out[requestsEach] = took[3]
	}
	return out, nil
}

// perform is the task of a stage's worker: a round of pairs for each name of
// an adapter that it hears, answered by median, 99th percentile and CPU time
// of a pair in microseconds, and by its requests.
func perform(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
	mutexes := map[string]mutex{}
	lockers := map[string]locker{}
	for _, name := range j.Adapters {
		one := j
		one.Adapter = name
		l, err := openLocker(ctx, one)
		if err != nil {
			return err
		}
		mutexes[name], lockers[name] = l.mutex("bench/free/"+name), l
	}
	fmt.Fprintln(out, "ready")
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimSpace(line)
		if name == stageEnd {
			return nil
		}
		m := mutexes[name]
		took := make([]float64, 0, roundPairs)
		sent, used := requestsOf(lockers[name]), cpuTime()
		for i := range roundWarm + roundPairs {
			before := now()
			unlock, err := m.lock(ctx)
			if err != nil {
				return err
			}
			if err := unlock(); err != nil {
				return err
			}
			if i >= roundWarm {
				took = append(took, float64(now()-before)/1e3)
			}
		}
		const all = roundWarm + roundPairs
		answer := [4]float64{
			quantile(took, 0.5), quantile(took, 0.99), float64(cpuTime()-used) / 1e3 / all,
			float64(requestsOf(lockers[name])-sent) / all,
		}
		if err := json.NewEncoder(out).Encode(answer); err != nil {
			return err
		}
	}
}
