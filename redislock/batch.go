package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// batcher sends the requests of many claims together. A request that finds none under way goes alone, at once. Those that
// come meanwhile wait, and when its answer is there, or when they are a hundred, one of them sends them all, as one script
// for the names to be taken and one for the names to be freed. So nobody waits for company, a crowd costs the server and
// this process a fraction of what each would alone, and both work at the same time. It is for one server: on a cluster one
// script has one slot.
//
// Whoever waits does not look at its context, because a channel for its end and the timer behind that would be a tenth of
// what a lock in a crowd costs. A lookout does, every few milliseconds while somebody waits.
type batcher struct {
	d *Driver

	mu      sync.Mutex
	flights int      // under way
	waiting []*order // for the end of one
	flying  []*order // sent together
	watched bool     // the lookout is there
}

// request is that of one claim: to take a free name, or to leave one.
type request struct {
	keys  *keys
	value string                             // that says who holds; to leave, its beginning
	ttl   string                             // in ms
	leave func(context.Context) (any, error) // leaves alone; nil to take
	again func() bool                        // see redisconn.Call
}

// order is a request that goes with others.
type order struct {
	request
	answer any
	err    error

	ctx  context.Context //nolint:containedctx // the lookout asks it
	turn chan turn
	over chan struct{} // made when the caller goes before the answer; closed when that is there, or will not be
}

// orders are used again: their channels would be a good part of what a crowd leaves to the garbage collector.
var orders = sync.Pool{New: func() any { return &order{turn: make(chan turn, 1)} }}

// turn is what whoever waits is told.
type turn uint8

const (
	answered  turn = iota
	leading        // it is to send for all who wait
	abandoned      // its context has ended
)

// send returns the answer to r, or ctx's error: with ErrNotSent if nothing has left.
func (b *batcher) send(ctx context.Context, r request) (any, error) {
	if b.d.cluster {
		return b.single(ctx, r)
	}
	b.mu.Lock()
	if b.flights == 0 {
		b.flights++
		b.mu.Unlock()
		defer b.pass(nil)
		return b.single(ctx, r)
	}
	if !b.watched {
		b.watched = true
		go b.watch()
	}
	o := orders.Get().(*order) //nolint:forcetypeassert // nothing else is in there
	o.request, o.ctx = r, ctx
	var told turn
	if b.flights < most && len(b.waiting) >= batch-1 {
		b.flights++
		b.mu.Unlock()
		told = b.lead(o)
	} else {
		b.waiting = append(b.waiting, o)
		b.mu.Unlock()
		if told = <-o.turn; told == leading {
			told = b.lead(o)
		}
	}
	if o.over != nil {
		return nil, &sessions.Underway{Cause: ctx.Err(), Over: o.over}
	}
	v, err := o.answer, o.err
	if told == abandoned {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	*o = order{turn: o.turn}
	orders.Put(o)
	return v, err
}

// lead sends all orders that wait, with o.
func (b *batcher) lead(o *order) turn {
	if o.ctx.Err() != nil {
		b.pass(nil)
		return abandoned
	}
	b.mu.Lock()
	n := min(len(b.waiting), batch-1)
	if n == 0 {
		b.mu.Unlock()
		o.answer, o.err = b.single(o.ctx, o.request)
		b.pass(nil)
		return answered
	}
	orders := append(slices.Clone(b.waiting[:n]), o)
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.flying = append(b.flying, orders...)
	b.mu.Unlock()
	go func() { // the leader may go; the others' requests go on
		b.together(orders)
		b.pass(orders)
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

// pass ends what was sent, with flown if that was several, and has the next order send if the server has nothing else to
// do or enough wait.
func (b *batcher) pass(flown []*order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(flown) > 0 {
		at := slices.Index(b.flying, flown[0])
		b.flying = slices.Delete(b.flying, at, at+len(flown)) // whom the lookout has not told by now is told the answer
	}
	if b.flights--; len(b.waiting) == 0 || b.flights > 0 && len(b.waiting) < batch {
		return
	}
	b.flights++
	next := b.waiting[0]
	b.waiting = slices.Delete(b.waiting, 0, 1)
	next.turn <- leading
}

const (
	most = 3 // flights
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

// single sends one request alone.
func (b *batcher) single(ctx context.Context, r request) (any, error) {
	if r.leave != nil {
		return r.leave(ctx)
	}
	return b.d.run.Run(ctx, redisconn.Call{
		Script: takeScript, Keys: []string{r.keys.name, r.keys.counter}, Args: []string{r.value, r.ttl, b.d.lifeMS}, Again: r.again,
	})
}

// together runs the two scripts for all orders.
func (b *batcher) together(orders []*order) {
	leaving, taking := divide(orders)
	var calls []redisconn.Call
	var about [][]*order
	if n := len(leaving); n > 0 {
		c := redisconn.Call{Script: freeScript, Keys: make([]string, 0, n), Args: make([]string, 0, n), Again: again(leaving)}
		for _, o := range leaving {
			c.Keys, c.Args = append(c.Keys, o.keys.name), append(c.Args, o.value)
		}
		calls, about = append(calls, c), append(about, leaving)
	}
	if n := len(taking); n > 0 {
		c := redisconn.Call{Script: takeScript, Keys: make([]string, 0, 2*n), Args: make([]string, 0, 2*n+1), Again: again(taking)}
		for _, o := range taking {
			c.Keys, c.Args = append(c.Keys, o.keys.name, o.keys.counter), append(c.Args, o.value, o.ttl)
		}
		c.Args = append(c.Args, b.d.lifeMS)
		calls, about = append(calls, c), append(about, taking)
	}
	replies := b.d.run.RunAll(sessions.Within(context.Background(), b.d.options.Timeout), calls)
	for i, reply := range replies {
		if len(about[i]) > 1 && errors.Is(reply.Err, driver.ErrRefused) { // one name of them, but nobody says which
			for _, o := range about[i] {
				o.answer, o.err = b.single(sessions.Within(context.Background(), b.d.options.Timeout), o.request)
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
			case j < len(values):
				o.answer = values[j]
			default:
				o.err = fmt.Errorf("the server answered %d of %d claims", len(values), len(about[i]))
			}
		}
	}
}

// again is that of orders that go in one script: where one of them may not be sent again, none is.
func again(orders []*order) func() bool {
	return func() bool {
		yes := true
		for _, o := range orders {
			yes = o.again() && yes
		}
		return yes
	}
}

// divide sorts the orders by script.
func divide(orders []*order) (leaving, taking []*order) {
	all := make([]*order, len(orders))
	n, end := 0, len(orders)
	for _, o := range orders {
		if o.leave != nil {
			all[n] = o
			n++
		} else {
			end--
			all[end] = o
		}
	}
	return all[:n], all[n:]
}
