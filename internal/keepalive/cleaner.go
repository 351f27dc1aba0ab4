package keepalive

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// How many releases of unknown outcome are tried at the same time: a store that answers nothing
// must not fill the process with work for it, so they are few at first and after each try that
// failed. One that answers, but is far away, must not keep a thousand for many round trips: each
// answer makes room for one more. Further ones wait for their turn.
const (
	maxCleanups  = 16
	mostCleanups = 256
)

// A Cleaner repeats, on contexts of its own, releases whose outcome is unknown: of claims whose
// acquire was cancelled, timed out or failed on the way back, and of leases whose Release was not
// answered. It stops when the store has answered or when the claim's time is over anyway. It also
// closes sessions that are over.
//
//	add ─▶ queue ─▶ one of the workers tries once ─▶ done: room for one more worker
//	           ▲                       │
//	           └──── not answered ◀────┘ room for maxCleanups
type Cleaner struct {
	ctx    context.Context //nolint:containedctx // lasts as long as the client
	cancel context.CancelFunc

	mu      sync.Mutex
	queue   []*cleanup
	workers int
	limit   int           // of the workers
	running int           // in the queue or being tried, with the sessions that are being closed
	idle    chan struct{} // closed when running is 0; replaced when it is not
}

// cleanup is one release that is repeated until it succeeds, or until its time is over, but tried
// once in any case.
type cleanup struct {
	end     time.Time
	release func(context.Context) error
	done    func(certain bool)
}

// NewCleaner returns a cleaner for a client.
func NewCleaner() *Cleaner {
	ctx, cancel := context.WithCancel(context.Background())
	idle := make(chan struct{})
	close(idle)
	return &Cleaner{ctx: ctx, cancel: cancel, limit: maxCleanups, idle: idle}
}

// The pauses of a worker after tries that failed: short at first, and never so long that a claim of
// ours stands in a healed store for a second.
const (
	FirstPause = 10 * time.Millisecond
	lastPause  = 400 * time.Millisecond
)

// add calls release in the background until it succeeds, each try bounded, for at most the
// time given, and then done, with whether it did. It does nothing when the client has ended.
func (cl *Cleaner) add(within time.Duration, release func(context.Context) error, done func(certain bool)) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.ctx.Err() != nil {
		return
	}
	cl.begin()
	cl.queue = append(cl.queue, &cleanup{time.Now().Add(within), release, done})
	cl.startWorker()
}

// startWorker begins a worker where there is work and room for one. cl.mu is held.
func (cl *Cleaner) startWorker() {
	if len(cl.queue) > 0 && cl.workers < cl.limit {
		cl.workers++
		go cl.work()
	}
}

// tried makes room for one more worker where the store has answered, and else for the first few
// alone: the others end.
func (cl *Cleaner) tried(answered bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !answered {
		cl.limit = maxCleanups
		return
	}
	cl.limit = min(cl.limit+1, mostCleanups)
	cl.startWorker()
}

// next takes the first of the queue, or ends a worker.
func (cl *Cleaner) next() *cleanup {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if len(cl.queue) == 0 || cl.workers > cl.limit {
		if cl.workers--; cl.workers == 0 { // the next ones may meet a store that is silent by then
			cl.queue, cl.limit = nil, maxCleanups
		}
		return nil
	}
	c := cl.queue[0]
	cl.queue[0], cl.queue = nil, cl.queue[1:]
	return c
}

// work tries what is in the queue, one after the other, until it is empty. What was not answered
// goes to its end: of a store of many servers one may be silent, and does not hold up the others.
func (cl *Cleaner) work() {
	pause := FirstPause
	for c := cl.next(); c != nil; c = cl.next() {
		ctx, cancel := context.WithTimeout(cl.ctx, lastPause)
		err := c.release(ctx)
		cancel()
		switch {
		case err == nil:
			pause = FirstPause
			c.done(true)
			cl.over()
			cl.tried(true)
		case cl.ctx.Err() != nil || !time.Now().Before(c.end):
			c.done(false)
			cl.over()
		default:
			cl.tried(false)
			Sleep(cl.ctx, pause)
			pause = min(2*pause, lastPause)
			cl.mu.Lock()
			cl.queue = append(cl.queue, c)
			cl.mu.Unlock()
		}
	}
}

// Close tells the driver, in the background, that a session is over: also of one that the store
// ended, because the driver may have files and connections for it. What is not closed in time goes
// by its TTL.
func (cl *Cleaner) Close(s driver.Session) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.begin()
	go func() {
		defer cl.over()
		ctx, cancel := context.WithTimeout(cl.ctx, ReleaseTimeout)
		defer cancel()
		_ = s.Close(ctx)
	}()
}

// ended reports whether the client has ended, and nothing more is tried.
func (cl *Cleaner) ended() bool { return cl.ctx.Err() != nil }

func (cl *Cleaner) begin() {
	if cl.running == 0 {
		cl.idle = make(chan struct{})
	}
	cl.running++
}

func (cl *Cleaner) over() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.running--; cl.running == 0 {
		close(cl.idle)
	}
}

// Finish waits for what is running until ctx ends, and then stops it. It waits for that until late
// ends: some clients of stores do not look at a context while they connect.
func (cl *Cleaner) Finish(ctx, late context.Context) {
	cl.mu.Lock()
	idle := cl.idle
	cl.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	cl.cancel()
	select {
	case <-idle:
	case <-late.Done():
	}
}

// Sleep pauses, and reports whether ctx lasted that long.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Backoff is the pause after the nth failure in a row.
func Backoff(n int) time.Duration {
	d := min(FirstPause<<min(n, 8), lastPause)
	return d - time.Duration(rand.Int64N(int64(d)/5+1))
}
