package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mutant"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// batcher sends the requests of many claims together. A request that finds none under way goes alone, at once. Those that
// come meanwhile wait, and when its answer is there the first of them sends them all, as one script for the names to
// be taken and one for the names to be freed. So nobody waits for company, and a crowd costs the server and this process
// a fraction of what each would alone. It is for one server: on a cluster one script has one slot.
type batcher struct {
	d *Driver

	mu      sync.Mutex
	busy    bool // somebody sends
	waiting []*order
}

// order is the request of one claim: to take a free name, or to leave one.
type order struct {
	leave      bool
	alone      redisconn.Call // as it goes when it is alone
	keys, args []string       // its part of a batch

	us         string // the floor that went with it, and its generation; see floor
	generation uint64
	value      any
	err        error
	turn       chan bool     // answered, or true: send
	over       chan struct{} // closed when a batch with it is answered, or will not be
}

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
	o.turn, o.over = make(chan bool, 1), make(chan struct{})
	b.waiting = append(b.waiting, o)
	b.mu.Unlock()
	select {
	case first := <-o.turn:
		if first {
			return b.lead(ctx, o)
		}
		return o.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	i := slices.Index(b.waiting, o)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	b.mu.Unlock()
	if i >= 0 {
		return fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	select {
	case first := <-o.turn:
		if !first {
			return o.err
		}
		b.pass()
		return fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	default:
		return &redisstore.Underway{Cause: ctx.Err(), Over: o.over}
	}
}

// lead sends all orders that wait, with o.
func (b *batcher) lead(ctx context.Context, o *order) error {
	b.mu.Lock()
	n := min(len(b.waiting), batch-1)
	orders := append(slices.Clone(b.waiting[:n]), o)
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.mu.Unlock()
	if n == 0 {
		b.single(ctx, o)
		b.pass()
		return o.err
	}
	go func() { // the leader may go; the others' requests go on
		b.together(orders)
		b.pass()
		for _, o := range orders {
			close(o.over)
			o.turn <- false
		}
	}()
	select {
	case <-o.turn:
		return o.err
	case <-ctx.Done():
		return &redisstore.Underway{Cause: ctx.Err(), Over: o.over}
	}
}

// pass has the next order send, if there is one.
func (b *batcher) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.busy = false
		return
	}
	next := b.waiting[0]
	b.waiting = slices.Delete(b.waiting, 0, 1)
	next.turn <- true
}

func (b *batcher) single(ctx context.Context, o *order) {
	call := o.alone
	if !o.leave {
		o.us, o.generation = b.d.floor.get(b.d.conn)
		call.Args = append([]string{o.us}, o.args...)
	}
	o.value, o.err = b.d.run.Run(ctx, call)
}

// together runs the two scripts for all orders.
func (b *batcher) together(orders []*order) {
	us, generation := b.d.floor.get(b.d.conn)
	take := redisconn.Call{Script: takeScript, Args: []string{us}}
	leave := redisconn.Call{Script: freeScript}
	var taking, leaving []*order
	for _, o := range orders {
		if o.leave {
			leave.Keys, leave.Args = append(leave.Keys, o.keys...), append(leave.Args, o.args...)
			leaving = append(leaving, o)
			continue
		}
		o.us, o.generation = us, generation
		take.Keys, take.Args = append(take.Keys, o.keys...), append(take.Args, o.args...)
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
			case len(about[i]) == 1 && !o.leave:
				o.value = reply.Value
			case j < len(values) && mutant.On("R11"):
				o.value = values[len(values)-1-j]
			case j < len(values):
				o.value = values[j]
			default:
				o.err = fmt.Errorf("the server answered %d of %d claims", len(values), len(about[i]))
			}
		}
	}
}
