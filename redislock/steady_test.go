package redislock_test

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// heart is a clock that sees when this process does not run. What a process can do only while it
// runs is not judged by a time in which it did not.
type heart struct {
	mu    sync.Mutex
	stops []stop
}

type stop struct {
	at   time.Time // when it was over
	took time.Duration
}

const (
	beat    = 5 * time.Millisecond
	stopped = 50 * time.Millisecond // from here on it is a stop
)

func newHeart(t *testing.T) *heart {
	t.Helper()
	h := &heart{}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-tick.C:
			case <-over:
				return
			}
			now := time.Now()
			if took := now.Sub(last) - beat; took > stopped {
				h.mu.Lock()
				h.stops = append(h.stops, stop{now, took})
				h.mu.Unlock()
			}
			last = now
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-done
	})
	return h
}

// stopped reports whether the process stood still at any time since then.
func (h *heart) stopped(since time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.stops {
		if s.at.After(since) {
			return true
		}
	}
	return false
}

// errAgain is a try that says nothing.
var errAgain = errors.New("this try says nothing")

// tries repeats what says nothing, for a while.
func tries(what func() error) (err error) {
	for range 20 {
		if err = what(); !errors.Is(err, errAgain) {
			break
		}
	}
	return err
}

// all runs f so many times at once.
func all(n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Go(func() { errs[i] = f(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}
