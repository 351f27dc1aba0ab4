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
//
// A caller that waits does not ask its context for a channel: that, and the timer behind it, would be a third
// of what a lock in a crowd costs this process. The lookout asks instead, every few milliseconds while there
// is somebody.
type Batcher[R any] struct {
	Alone    func(ctx context.Context, ask R) (any, error)
	Together func(asks []R) []Answer // in order, and within a time
	Stop     <-chan struct{}         // closed: the lookout goes; nil: only when it has nothing to do

	orders sync.Pool // of *order[R]; their channels would be a good part of a crowd's garbage

	mu      sync.Mutex
	sends   int         // under way
	waiting []*order[R] // for the end of one; empty if sends is 0
	flying  []*order[R] // sent together, and not answered
	watched bool        // the lookout is there
}

// order is a request that waits or is sent with others.
type order[R any] struct {
	ask  R
	ctx  context.Context //nolint:containedctx // of who asks: the lookout asks it
	told chan struct{}   // holds one; filled once, by the answer or by the lookout
	back bool            // the lookout has taken it back
	over chan struct{}   // made by the lookout where it was sent; closed when it is answered
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
	o, _ := b.orders.Get().(*order[R])
	if o == nil {
		o = &order[R]{told: make(chan struct{}, 1)}
	}
	o.ask, o.ctx = ask, ctx
	b.waiting = append(b.waiting, o)
	if some := b.next(); some != nil {
		go b.run(some)
	}
	b.mu.Unlock()
	<-o.told
	if o.over != nil { // it is used until it is answered, so it is not for others
		return nil, &sessions.Underway{Cause: ctx.Err(), Over: o.over}
	}
	v, err := o.Value, o.Err
	if o.back {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	*o = order[R]{told: o.told}
	b.orders.Put(o)
	return v, err
}

const (
	look = 5 * time.Millisecond
	idle = 200 // looks at nobody until the lookout goes
)

// watch is the lookout.
func (b *Batcher[R]) watch() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for left := idle; left > 0; {
		stopped := false
		select {
		case <-tick.C:
		case <-b.Stop:
			stopped = true
		}
		left = b.lookOnce(left, stopped)
	}
}

// lookOnce lets those go whose context has ended, and returns how many more looks at nobody there are to be.
func (b *Batcher[R]) lookOnce(left int, stopped bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left--; len(b.waiting)+len(b.flying) > 0 {
		left = idle
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(o *order[R]) bool {
		o.back = o.ctx.Err() != nil
		if o.back {
			o.told <- struct{}{}
		}
		return o.back
	})
	for _, o := range b.flying {
		if o.over == nil && o.ctx.Err() != nil {
			o.over = make(chan struct{})
			o.told <- struct{}{}
		}
	}
	if stopped {
		left = 0
	}
	b.watched = left > 0
	return left
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
	b.flying = append(b.flying, some...)
	return some
}

// run sends some orders, and then those that are to be sent next.
func (b *Batcher[R]) run(some []*order[R]) {
	for some != nil {
		b.send(some)
		b.mu.Lock()
		b.sends--
		at := slices.Index(b.flying, some[0])
		b.flying = slices.Delete(b.flying, at, at+len(some)) // whom the lookout has not told by now is told the answer
		next := b.next()
		b.mu.Unlock()
		for _, o := range some { // after the next are taken, or who is answered first would go alone beside them
			if o.over != nil {
				close(o.over)
			} else {
				o.told <- struct{}{}
			}
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
