package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// atRest is processes in which nothing happens: they hold locks, or wait for
// them, and should cost next to nothing.
type atRest struct {
	adapter string
	ttl     time.Duration
	names   int // locks that are held by one process
	waiters int // goroutines that wait in another process, spread over the names; 0 = nobody does
}

// quiet is what a worker of atRest measured over its window.
type quiet struct {
	CPU, Operations, Renewals, Requests, Writes, Window int64 // Writes -1 = not known; Window and CPU in nanoseconds
}

func (a atRest) run(ctx context.Context, s scale) (_ sample, err error) {
	at, err := openSite(ctx, a.adapter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	names, waiters := max(1, a.names/s.shrink), a.waiters/s.shrink
	jobs := []job{{Count: names, Hold: true}}
	if waiters > 0 {
		jobs = append(jobs, job{Count: waiters})
	}
	var workers []*worker
	defer func() { stopAll(workers) }()
	for i, j := range jobs {
		j.Task, j.Adapter, j.Names = "rest", a.adapter, names
		j.Place = at.place(i+1, len(jobs))
		j.Place.TTL = a.ttl
		w, err := startWorker(ctx, j, nil)
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
		if err := w.hear("ready"); err != nil {
			return nil, err
		}
	}
	time.Sleep(s.warm) // the waiters get to their places
	before, err := at.look()
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		if err := w.say(strconv.FormatInt(s.rest.Nanoseconds(), 10)); err != nil {
			return nil, err
		}
	}
	var sum quiet
	for _, w := range workers {
		var q quiet
		if err := w.result(&q); err != nil {
			return nil, err
		}
		sum.CPU += q.CPU
		sum.Operations += q.Operations
		sum.Renewals += q.Renewals
		sum.Requests += q.Requests
		sum.Writes += q.Writes
		sum.Window = max(sum.Window, q.Window)
	}
	after, err := at.look()
	if err != nil {
		return nil, err
	}
	clients, err := at.clients(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range slices.Backward(workers) { // waiters first: nobody may find a lock free
		if err := w.say("end"); err != nil {
			return nil, err
		}
		if err := w.finish(); err != nil {
			return nil, err
		}
	}
	seconds := float64(sum.Window) / 1e9
	out := sample{
		cpuShare:   float64(sum.CPU) / 1e7 / seconds,
		operations: float64(sum.Operations) / seconds,
		renewals:   float64(sum.Renewals) / seconds,
		writeCalls: float64(sum.Writes) / seconds,
	}
	if a.ttl > 0 {
		out[perTTL] = out[operations] * a.ttl.Seconds() / float64(len(workers)*names)
	}
	did := after.since(before)
	if at.postgres != nil {
		out[serverShare] = did.cpu * 100 / seconds
		out[connections] = clients
		out[requests] = float64(sum.Requests) / seconds
		out[requestsPerTTL] = max(0, out[requests]-out[renewals]) * a.ttl.Seconds() / float64(len(workers)*names)
		if sum.Renewals > 0 {
			out[perRenewal] = float64(sum.Requests) / float64(sum.Renewals)
		}
	}
	if at.etcd != nil {
		out[serverShare] = did.cpu * 100 / seconds
		out[requests] = float64(sum.Requests) / seconds
	}
	if len(at.redis) > 0 {
		out[serverShare] = did.cpu * 100 / seconds
		out[serverCommands] = did.commands / seconds
		out[requests] = did.received / seconds
		out[requestsPerTTL] = max(0, out[requests]-out[renewals]) * a.ttl.Seconds() / float64(len(workers)*names)
	}
	return out, nil
}

// rest is the task of atRest's workers. It says ready when every lock is held
// or waited for, hears how many nanoseconds to rest, and answers what they
// cost.
func rest(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error {
	l, err := openLocker(ctx, j)
	if err != nil {
		return err
	}
	if err := takePlaces(ctx, j, l); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	window, err := strconv.ParseInt(line[:len(line)-1], 10, 64)
	if err != nil {
		return err
	}
	begin, before := now(), observe(l)
	time.Sleep(time.Duration(window))
	after := observe(l)
	q := quiet{
		CPU: after.CPU - before.CPU, Operations: after.Operations - before.Operations,
		Renewals: after.Renewals - before.Renewals, Requests: after.Requests - before.Requests,
		Writes: after.Writes - before.Writes, Window: now() - begin,
	}
	if err := json.NewEncoder(out).Encode(q); err != nil {
		return err
	}
	_, err = in.ReadString('\n') // rest on while the other worker measures
	return err
}

// takePlaces takes each of the names, or starts the goroutines that wait for
// them. A waiter that gets a lock that is held ends the process.
func takePlaces(ctx context.Context, j job, l locker) error {
	if !j.Hold {
		for i := range j.Count {
			go func() {
				_, err := l.mutex(restName(i % j.Names)).lock(ctx)
				fmt.Fprintln(os.Stderr, "bench: a waiter came back while the lock was held:", err)
				os.Exit(1)
			}()
		}
		return nil
	}
	var mu sync.Mutex
	var failure error
	var all sync.WaitGroup
	const abreast = 16
	for first := range abreast {
		all.Go(func() {
			for i := first; i < j.Count; i += abreast {
				if _, err := l.mutex(restName(i)).lock(ctx); err != nil {
					mu.Lock()
					failure = errors.Join(failure, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return failure
}

func restName(i int) string { return "bench/rest/" + strconv.Itoa(i) }

func observe(l locker) quiet {
	q := quiet{CPU: cpuTime(), Requests: requestsOf(l), Writes: writes()}
	if m, ok := l.(meter); ok {
		q.Operations, q.Renewals = m.calls()
	}
	return q
}
