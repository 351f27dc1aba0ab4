// Package batch sends the requests of many callers together.
package batch

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Full is how many requests are sent together, at most.
const Full = 100

const most = 3 // sends that are under way together, at most

// Answer is that to one request.
type Answer struct {
	Value any
	Err   error
}

// Batcher sends the requests of many callers together. A request that finds nothing under way is sent
// alone, at once, by its caller. Those that come meanwhile wait, and are sent together when the answer is
// there, or when they fill a batch. So nobody waits for company; a crowd costs the server and this
// process a fraction of what each would cost alone; and both work at the same time.
//
// A caller whose context ends while its request waits takes it back. Where it was sent, the caller
// returns, and the error is a sessions.Underway that says when the request is over. The requests of others
// in the batch go on.
type Batcher[R any] struct {
	Alone    func(ctx context.Context, ask R) (any, error)
	Together func(asks []R) []Answer // in order, and within a time

	mu      sync.Mutex
	sends   int         // under way
	waiting []*order[R] // for the end of one; empty if sends is 0
}

// order is a request that waits or is sent with others.
type order[R any] struct {
	ask  R
	ctx  context.Context //nolint:containedctx // of who asks, for a request that turns out to be alone
	done chan struct{}   // closed when answer is there
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
	o := &order[R]{ask: ask, ctx: ctx, done: make(chan struct{})}
	b.waiting = append(b.waiting, o)
	if some := b.next(); some != nil {
		go b.run(some)
	}
	b.mu.Unlock()
	select {
	case <-o.done:
		return o.Value, o.Err
	case <-ctx.Done():
	}
	if b.withdraw(o) {
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	return nil, &sessions.Underway{Cause: ctx.Err(), Over: o.done}
}

// withdraw removes an order that was not sent yet, and reports whether it did.
func (b *Batcher[R]) withdraw(o *order[R]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, o)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

// sent ends the send of a request that was alone, and begins the next.
func (b *Batcher[R]) sent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sends--
	if some := b.next(); some != nil {
		go b.run(some)
	}
}

// next takes those that are to be sent now, as one send more: a full batch, or all that wait if nothing is
// under way. mu is held.
func (b *Batcher[R]) next() []*order[R] {
	n := min(len(b.waiting), Full)
	if n == 0 || b.sends == most || b.sends > 0 && n < Full {
		return nil
	}
	b.sends++
	some := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	return some
}

// run sends some orders, and then those that are to be sent next.
func (b *Batcher[R]) run(some []*order[R]) {
	for some != nil {
		b.send(some)
		b.mu.Lock()
		b.sends--
		next := b.next()
		b.mu.Unlock()
		for _, o := range some { // after the next are taken, or who is answered first would go alone beside them
			close(o.done)
		}
		some = next
	}
}

func (b *Batcher[R]) send(some []*order[R]) {
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
