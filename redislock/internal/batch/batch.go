// Package batch sends the requests of many callers together.
package batch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Full is how many requests are sent together, at most.
const Full = 100

const most = 3 // sends that are in flight together, at most

// Answer is that to one request.
type Answer struct {
	Value any
	Err   error
}

// Batcher sends the requests of many callers together. A request that finds nothing in flight is
// sent alone, at once, by its caller. Those that come meanwhile wait, and are sent together when
// the answer is there, or when they fill a batch. So no request waits for others to come; under
// contention a request costs the server and this process a fraction of what it costs alone; and
// both work at the same time.
//
// A caller whose context ends withdraws its request while that waits. If it was sent, the caller
// returns, and the error is a sessions.Underway that says when the request is over. The other
// requests of the batch go on.
//
// A caller that waits does not select on its context: the channel, and the timer behind it, would
// be a third of the cost of a contended lock in this process. A watchdog checks the contexts
// instead, every few milliseconds while there are requests.
type Batcher[R any] struct {
	Alone    func(ctx context.Context, ask R) (any, error)
	Together func(asks []R) []Answer // in order, and within a time
	Stop     <-chan struct{}         // closed: the watchdog exits; nil: it exits only when idle

	pool sync.Pool // recycles *request[R]: under contention their channels dominate garbage

	mu       sync.Mutex
	sends    int           // in flight
	waiting  []*request[R] // for the end of one; empty if sends is 0
	inFlight []*request[R] // sent together, and not answered
	watched  bool          // the watchdog runs
}

// request is one that waits or is sent with others.
type request[R any] struct {
	ask       R
	ctx       context.Context //nolint:containedctx // of the caller
	ready     chan struct{}   // has room for one; filled once, by the answer or by the watchdog
	withdrawn bool            // by the watchdog, before it was sent
	over      chan struct{}   // made by the watchdog if it was sent; closed when it is answered
	answer
}

type answer = Answer

// Do returns the answer to a request, or ctx's error, with ErrNotSent if it was not sent.
func (b *Batcher[R]) Do(ctx context.Context, ask R) (any, error) {
	b.mu.Lock()
	if b.sends == 0 {
		b.sends++
		b.mu.Unlock()
		defer b.sent()
		return b.Alone(ctx, ask)
	}
	if !b.watched {
		b.watched = true
		go b.watch()
	}
	o, _ := b.pool.Get().(*request[R])
	if o == nil {
		o = &request[R]{ready: make(chan struct{}, 1)}
	}
	o.ask, o.ctx = ask, ctx
	b.waiting = append(b.waiting, o)
	if some := b.next(); some != nil {
		go b.run(some)
	}
	b.mu.Unlock()
	<-o.ready
	if o.over != nil { // it is in use until it is answered, so it is not recycled
		return nil, &sessions.Underway{Cause: ctx.Err(), Over: o.over}
	}
	v, err := o.Value, o.Err
	if o.withdrawn {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	*o = request[R]{ready: o.ready}
	b.pool.Put(o)
	return v, err
}

const (
	interval  = 5 * time.Millisecond
	idleTicks = 200 // ticks without a request after which the watchdog exits
)

// watch is the watchdog.
func (b *Batcher[R]) watch() {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for left := idleTicks; left > 0; {
		stopped := false
		select {
		case <-tick.C:
		case <-b.Stop:
			stopped = true
		}
		left = b.tick(left, stopped)
	}
}

// tick ends the requests whose context has ended, and returns how many more idle ticks there are to
// be.
func (b *Batcher[R]) tick(left int, stopped bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left--; len(b.waiting)+len(b.inFlight) > 0 {
		left = idleTicks
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(o *request[R]) bool {
		o.withdrawn = o.ctx.Err() != nil
		if o.withdrawn {
			o.ready <- struct{}{}
		}
		return o.withdrawn
	})
	for _, o := range b.inFlight {
		if o.over == nil && o.ctx.Err() != nil {
			o.over = make(chan struct{})
			o.ready <- struct{}{}
		}
	}
	if stopped {
		left = 0
	}
	b.watched = left > 0
	return left
}

// sent ends the send of a request that was alone, and starts the next.
func (b *Batcher[R]) sent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sends--
	if some := b.next(); some != nil {
		go b.run(some)
	}
}

// next removes the requests that are to be sent now, as one more send: a full batch, or all that
// wait if nothing is in flight. The caller holds mu.
func (b *Batcher[R]) next() []*request[R] {
	n := min(len(b.waiting), Full)
	if n == 0 || b.sends == most || b.sends > 0 && n < Full {
		return nil
	}
	b.sends++
	some := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.inFlight = append(b.inFlight, some...)
	return some
}

// run sends some requests, and then those that are to be sent next.
func (b *Batcher[R]) run(some []*request[R]) {
	for some != nil {
		b.send(some)
		b.mu.Lock()
		b.sends--
		at := slices.Index(b.inFlight, some[0])
		b.inFlight = slices.Delete(b.inFlight, at, at+len(some)) // from now on the watchdog does not end them
		next := b.next()
		b.mu.Unlock()
		for _, o := range some { // after next, or the first caller that is back would send alone beside them
			if o.over != nil {
				close(o.over)
			} else {
				o.ready <- struct{}{}
			}
		}
		some = next
	}
}

func (b *Batcher[R]) send(some []*request[R]) {
	if len(some) == 1 {
		some[0].Value, some[0].Err = b.Alone(some[0].ctx, some[0].ask)
		return
	}
	asks := make([]R, len(some))
	for i, o := range some {
		asks[i] = o.ask
	}
	for i, a := range b.Together(asks) {
		some[i].answer = a
	}
}
