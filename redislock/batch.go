package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mutant"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// batcher sends the requests of many claims together. A request that finds none under way goes alone, at once. Those that
// come meanwhile wait, and when its answer is there the first of them sends them all, as one script for the names to
// be taken and one for the names to be freed. So nobody waits for company, and a crowd costs the server and this process
// a fraction of what each would alone. It is for one server: on a cluster one script has one slot.
//
// Whoever waits does not look at its context, because a channel for its end and the timer behind that would be a tenth of
// what a lock in a crowd costs. A lookout does, every few milliseconds while somebody waits.
type batcher struct {
	d *Driver

	mu      sync.Mutex
	busy    bool     // somebody sends
	waiting []*order // until that is over
	flying  []*order // sent together
	watched bool     // the lookout is there
}

// order is the request of one claim: to take a free name, or to leave one.
type order struct {
	keys  *keys
	value string                             // that says who holds; to leave, its beginning
	ttl   string                             // in ms
	leave func(context.Context) (any, error) // leaves alone; nil to take

	answer any
	err    error

	ctx  context.Context //nolint:containedctx // the lookout asks it
	turn chan turn
	over chan struct{} // made when the caller goes before the answer; closed when that is there, or will not be
}

// turn is what whoever waits is told.
type turn uint8

const (
	answered  turn = iota
	leading        // it is to send for all who wait
	abandoned      // its context has ended
)

// send has o answered, or returns ctx's error: with ErrNotSent if nothing has left.
func (b *batcher) send(ctx context.Context, o *order) error {
	if b.d.cluster {
		b.single(ctx, o)
		return o.err
	}
	b.mu.Lock()
	if !b.busy {
		b.busy = true
		b.mu.Unlock()
		b.single(ctx, o)
		b.pass()
		return o.err
	}
	o.ctx, o.turn = ctx, make(chan turn, 1)
	b.waiting = append(b.waiting, o)
	if !b.watched {
		b.watched = true
		go b.watch()
	}
	b.mu.Unlock()
	told := <-o.turn
	if told == leading {
		told = b.lead(ctx, o)
	}
	switch {
	case told == answered:
		return o.err
	case o.over != nil:
		return &redisstore.Underway{Cause: ctx.Err(), Over: o.over}
	default:
		return fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
}

// lead sends all orders that wait, with o.
func (b *batcher) lead(ctx context.Context, o *order) turn {
	if ctx.Err() != nil {
		b.pass()
		return abandoned
	}
	b.mu.Lock()
	n := min(len(b.waiting), batch-1)
	if n == 0 {
		b.mu.Unlock()
		b.single(ctx, o)
		b.pass()
		return answered
	}
	orders := append(slices.Clone(b.waiting[:n]), o)
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.flying = orders
	b.mu.Unlock()
	go func() { // the leader may go; the others' requests go on
		b.together(orders)
		b.pass()
		for _, o := range orders {
			if o.over != nil {
				close(o.over)
			} else {
				o.turn <- answered
			}
		}
	}()
	return <-o.turn
}

// pass ends what was sent, and has the next order send, if there is one.
func (b *batcher) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying = nil // whom the lookout has not told by now is told the answer
	if len(b.waiting) == 0 {
		b.busy = false
		return
	}
	next := b.waiting[0]
	b.waiting = slices.Delete(b.waiting, 0, 1)
	next.turn <- leading
}

const (
	look = 5 * time.Millisecond
	rest = 200 // looks at nobody until the lookout goes
)

// watch is the lookout.
func (b *batcher) watch() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for idle := 0; ; idle++ {
		select {
		case <-tick.C:
		case <-b.d.ctx.Done():
			idle = rest
		}
		b.mu.Lock()
		if (len(b.waiting) > 0 || len(b.flying) > 0) && b.d.ctx.Err() == nil {
			idle = 0
		}
		b.waiting = slices.DeleteFunc(b.waiting, func(o *order) bool {
			if o.ctx.Err() == nil {
				return false
			}
			o.turn <- abandoned
			return true
		})
		for _, o := range b.flying {
			if o.over == nil && o.ctx.Err() != nil {
				o.over = make(chan struct{})
				o.turn <- abandoned
			}
		}
		if b.watched = idle < rest; !b.watched {
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// single sends one order alone.
func (b *batcher) single(ctx context.Context, o *order) {
	if o.leave != nil {
		o.answer, o.err = o.leave(ctx)
		return
	}
	o.answer, o.err = b.d.run.Run(ctx, redisconn.Call{
		Script: takeScript, Keys: []string{o.keys.name, o.keys.counter}, Args: []string{o.value, o.ttl},
	})
}

// together runs the two scripts for all orders.
func (b *batcher) together(orders []*order) {
	take := redisconn.Call{Script: takeScript, Keys: make([]string, 0, 2*len(orders)), Args: make([]string, 0, 2*len(orders))}
	leave := redisconn.Call{Script: freeScript}
	var taking, leaving []*order
	for _, o := range orders {
		if o.leave != nil {
			leave.Keys, leave.Args = append(leave.Keys, o.keys.name), append(leave.Args, o.value)
			leaving = append(leaving, o)
			continue
		}
		take.Keys, take.Args = append(take.Keys, o.keys.name, o.keys.counter), append(take.Args, o.value, o.ttl)
		taking = append(taking, o)
	}
	var calls []redisconn.Call
	var about [][]*order
	if len(leaving) > 0 {
		calls, about = append(calls, leave), append(about, leaving)
	}
	if len(taking) > 0 {
		calls, about = append(calls, take), append(about, taking)
	}
	replies := b.d.run.RunAll(redisstore.Within(context.Background(), b.d.options.Timeout), calls)
	for i, reply := range replies {
		if len(about[i]) > 1 && errors.Is(reply.Err, driver.ErrRefused) { // one name of them, but nobody says which
			for _, o := range about[i] {
				b.single(redisstore.Within(context.Background(), b.d.options.Timeout), o)
			}
			continue
		}
		values, _ := reply.Value.([]any)
		for j, o := range about[i] {
			switch {
			case reply.Err != nil:
				o.err = reply.Err
			case len(about[i]) == 1 && o.leave == nil:
				o.answer = reply.Value
			case j < len(values) && mutant.On("R11"):
				o.answer = values[len(values)-1-j]
			case j < len(values):
				o.answer = values[j]
			default:
				o.err = fmt.Errorf("the server answered %d of %d claims", len(values), len(about[i]))
			}
		}
	}
}
