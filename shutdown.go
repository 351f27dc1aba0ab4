package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/keepalive"
	"github.com/interlock-go/interlock/internal/local"
)

// lastMoment is what is left of keepalive.ReleaseTimeout for the end of the sessions where a
// Release took the rest; and what a log and a tracer have at last, each, for what they were not
// told yet.
const lastMoment = 50 * time.Millisecond

// Shutdown ends the client in the manner of net/http: no new locks, waiters get ErrClosed, and
// holders run on until they release. When ctx ends before, their leases' contexts end with ErrLost
// wrapping ErrClosed and their claims are released a grace later, or when they release; Shutdown
// then returns ctx's error. A MinHold is kept in any case. After that the sessions are closed, and
// the store too if Open opened it; a store that does not answer delays that by 2 s at most, and
// what it has not confirmed is an error that matches ErrUncertain and names the locks: they are
// free when their time is over.
func (c *Client) Shutdown(ctx context.Context) error {
	return errors.Join(c.shutdown(ctx))
}

// shutdown returns whether it had to end leases, and how the store's own end went.
func (c *Client) shutdown(ctx context.Context) (held, closing error) {
	c.mu.Lock()
	first := !c.closed
	if first {
		c.closed, c.finished = true, make(chan struct{})
	}
	finished := c.finished
	c.mu.Unlock()
	began := c.clock.Now()
	if first {
		for _, p := range c.allPools() {
			p.Reject(ErrClosed)
		}
		c.draining.Store(true) // only now: until a pool rejected everybody it could grant once more
		c.checkEmpty()
	}
	select {
	case <-c.empty: // also when ctx has ended
	default:
		select {
		case <-c.empty:
		case <-ctx.Done():
			held = fmt.Errorf("interlock: shutdown: leases were held: %w", ctx.Err())
			for _, p := range c.allPools() {
				p.LoseAll(ErrClosed)
			}
			<-c.empty
		}
	}
	if !first {
		<-finished
		return held, nil
	}
	defer close(finished)
	// What Shutdown waits for after the last lease is gone, and a Release of just before for an
	// answer, have no more than ReleaseTimeout together.
	word := max(keepalive.ReleaseTimeout-c.clock.Since(max(began, clock.Instant(c.left.Load()))), lastMoment)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), word)
	defer cancel()
	cleaning, stop := context.WithTimeout(bounded, word/2) // what is not given back by then goes with the sessions
	late, end := context.WithTimeout(bounded, word*3/4)    // the sessions get the rest
	c.cleaner.Finish(cleaning, late)
	stop()
	end()
	closing = closeAll(bounded, c.allPools())
	if c.ownsDriver {
		closing = errors.Join(closing, c.driver.Close(bounded))
	}
	c.traces.Finish(lastMoment) // which may say to the log what it was not told of
	c.logs.Finish(lastMoment)
	return held, closing
}

// Close is Shutdown with a context that has ended: leases end now and their claims a grace later.
// It returns nil unless the store has not confirmed that in time, or the store that Open opened
// cannot be closed.
func (c *Client) Close() error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.shutdown(ended)
	return err
}

// closeAll closes the sessions of pools whose leases are all gone, side by side: a store that does
// not answer costs the time of one. What is not confirmed goes by its TTL, and is named, once
// however many sessions had it.
func closeAll(ctx context.Context, pools []*local.Pool) error {
	var mu sync.Mutex
	var why error
	var names []string
	var closes sync.WaitGroup
	for _, p := range pools {
		closes.Go(func() {
			unsure, err := p.Close(ctx)
			if len(unsure) == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if names = append(names, unsure...); why == nil {
				why = err
			}
		})
	}
	closes.Wait()
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const some = 5 // are named
	text := strings.Join(names[:min(some, len(names))], ", ")
	if more := len(names) - some; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if cause := ctx.Err(); cause != nil {
		why = cause // a driver may say so for each of them
	}
	return fmt.Errorf("interlock: close: %w: %s: %w", ErrUncertain, text, why)
}
