package interlock

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// maxCleanups is how many releases of unknown outcome may be repeated at the same time. Beyond it a claim waits
// until the store answers: one that answers nothing must not fill the process with work for it.
const maxCleanups = 16

// cleaner repeats, on contexts of its own, releases whose outcome is unknown: of claims whose acquire was cancelled,
// timed out or failed on the way back, and of leases whose Release was not answered. It stops when the store has
// answered or when the claim's time is over anyway. It also closes sessions that are over.
type cleaner struct {
	ctx    context.Context //nolint:containedctx // lasts as long as the client
	cancel context.CancelFunc

	mu       sync.Mutex
	cleaning int
	running  int           // with the sessions that are being closed
	idle     chan struct{} // closed when running is 0; replaced when it is not
}

func newCleaner() *cleaner {
	ctx, cancel := context.WithCancel(context.Background())
	idle := make(chan struct{})
	close(idle)
	return &cleaner{ctx: ctx, cancel: cancel, idle: idle}
}

// The pauses between tries: short at first, and never so long that a claim of ours stands in a healed store for a
// second.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 400 * time.Millisecond
)

// clean calls release in the background until it succeeds, each try bounded, for at most the time given, and then done
// with whether it did. It reports whether there was room for it; it does nothing otherwise.
func (cl *cleaner) clean(within time.Duration, release func(context.Context) error, done func(certain bool)) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.cleaning == maxCleanups || cl.ctx.Err() != nil {
		return false
	}
	cl.cleaning++
	cl.begin()
	go func() {
		certain := false
		defer func() {
			cl.ended(1) // first, so that done finds room for another
			done(certain)
		}()
		ctx, cancel := context.WithTimeout(cl.ctx, within)
		defer cancel()
		for pause := firstPause; ; pause = min(2*pause, lastPause) {
			try, cancelTry := context.WithTimeout(ctx, lastPause)
			err := release(try)
			cancelTry()
			if certain = err == nil; certain || !rest(ctx, pause) {
				return
			}
		}
	}()
	return true
}

// close tells the driver, in the background, that a session is over: also of one that the store ended, because the
// driver may have files and connections for it. What is not closed in time goes by its TTL.
func (cl *cleaner) close(s driver.Session) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.begin()
	go func() {
		defer cl.ended(0)
		ctx, cancel := context.WithTimeout(cl.ctx, lastWord)
		defer cancel()
		_ = s.Close(ctx)
	}()
}

func (cl *cleaner) begin() {
	if cl.running == 0 {
		cl.idle = make(chan struct{})
	}
	cl.running++
}

func (cl *cleaner) ended(cleaned int) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.cleaning -= cleaned
	if cl.running--; cl.running == 0 {
		close(cl.idle)
	}
}

// finish waits for what is running until ctx ends, and then stops it.
func (cl *cleaner) finish(ctx context.Context) {
	cl.mu.Lock()
	idle := cl.idle
	cl.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	cl.cancel()
	<-idle
}

// rest pauses, and reports whether ctx lasted that long.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff is the pause after the nth failure in a row.
func backoff(n int) time.Duration {
	d := min(firstPause<<min(n, 8), lastPause)
	return d - time.Duration(rand.Int64N(int64(d)/5+1))
}
