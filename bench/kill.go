package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// settle is how long a waiter is left alone before its holder is killed, so
// that it stands in line and sleeps by then.
const settle = 30 * time.Millisecond

// takeover is one holder killed with SIGKILL while another process waits.
type takeover struct{ adapter string }

func (t takeover) run(ctx context.Context, _ scale) (_ sample, err error) {
	at, err := openSite(ctx, t.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	s, err := startSuccession(ctx, at, t.adapter, 0)
	defer s.stop()
	if err != nil {
		return nil, err
	}
	killed := now()
	s.holder.kill()
	var got int64
	if err := s.waiter.result(&got); err != nil {
		return nil, err
	}
	if got < killed {
		return nil, errors.New("exclusion violated: the waiter held before the holder was killed")
	}
	return sample{latency: float64(got-killed) / 1e6}, nil
}

// succession is a process that holds the lock and one that waits for it.
type succession struct{ holder, waiter *worker }

// startSuccession returns when the holder holds and the waiter has stood in
// line for settle. It is to be stopped, also after an error.
func startSuccession(ctx context.Context, at *site, adapterName string, ttl time.Duration) (s succession, err error) {
	team, err := startTeam(ctx, 2, func(i int) job {
		p := at.place(i+1, 2)
		p.TTL = ttl
		return job{Task: []string{"hold", "follow"}[i], Adapter: adapterName, Place: p}
	})
	if err != nil {
		stopAll(team)
		return s, err
	}
	s = succession{team[0], team[1]}
	if err := s.holder.hear("held"); err != nil {
		return s, err
	}
	if err := s.waiter.hear("ready"); err != nil {
		return s, err
	}
	if err := s.waiter.say("go"); err != nil {
		return s, err
	}
	time.Sleep(settle)
	return s, nil
}

func (s succession) stop() {
	if s.holder != nil {
		stopAll([]*worker{s.holder, s.waiter})
	}
}

// hold is the task of the worker that will be killed.
func hold(ctx context.Context, j job, _ *bufio.Reader, out io.Writer) error {
	l, err := openLocker(ctx, j)
	if err != nil {
		return err
	}
	if _, err := l.mutex(contestName).lock(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "held")
	select {}
}

// follow is the task of the worker that waits, and answers when it held.
func follow(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
	l, err := getReady(ctx, j, in, out)
	if err != nil {
		return err
	}
	if _, err := l.mutex(contestName).lock(ctx); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(now())
}
