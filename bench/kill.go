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
	workers, err := startTeam(ctx, 2, func(i int) job {
		return job{
			Task: []string{"hold", "follow"}[i], Adapter: t.adapter,
			Place: at.place(i+1, 2),
		}
	})
	defer stopAll(workers)
	if err != nil {
		return nil, err
	}
	holder, waiter := workers[0], workers[1]
	if err := holder.hear("held"); err != nil {
		return nil, err
	}
	if err := waiter.hear("ready"); err != nil {
		return nil, err
	}
	if err := waiter.say("go"); err != nil {
		return nil, err
	}
	time.Sleep(settle)

	killed := now()
	holder.kill()
	var got int64
	if err := waiter.result(&got); err != nil {
		return nil, err
	}
	if got < killed {
		return nil, errors.New("exclusion violated: the waiter held before the holder was killed")
	}
	return sample{latency: float64(got-killed) / 1e6}, nil
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
	l, err := openLocker(ctx, j)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	if _, err := l.mutex(contestName).lock(ctx); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(now())
}
