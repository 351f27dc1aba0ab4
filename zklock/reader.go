package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// readerTimeout is that of the session of a reader.
const readerTimeout = 10 * time.Second

// reader is a session without claims, for inspection. It is opened when it is first used, is kept
// alive, and ends with the driver.
type reader struct {
	*ensemble
	opening chan struct{} // has a value while the session is being opened

	mu     sync.Mutex
	client *zk.Client // nil until somebody looks
	closed bool
}

// ask sends calls that only read, or break a claim.
func (r *reader) ask(ctx context.Context, calls ...*zk.Call) error {
	ctx, cancel := r.within(ctx)
	defer cancel()
	client, err := r.session(ctx)
	if err != nil {
		return err
	}
	err = client.Do(ctx, calls...)
	if errors.Is(err, driver.ErrSessionLost) { // no claim's session
		r.mu.Lock()
		if r.client == client {
			r.client = nil
		}
		r.mu.Unlock()
		return fmt.Errorf("%w: the session for looks has expired: %s", driver.ErrNotSent, err.Error())
	}
	return err
}

// session returns the session, and opens it if there is none. While it is being opened others wait
// for that.
func (r *reader) session(ctx context.Context) (*zk.Client, error) {
	select {
	case r.opening <- struct{}{}:
		defer func() { <-r.opening }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	r.mu.Lock()
	client, closed := r.client, r.closed
	r.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if client != nil {
		return client, nil
	}
	o := r.connection(readerTimeout)
	o.Heartbeat = true
	client, err := zk.Dial(ctx, o) // without the mutex: Close need not wait for it
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	if closed = r.closed; !closed {
		r.client = client
	}
	r.mu.Unlock()
	if closed {
		_ = client.Close(ctx)
		return nil, errClosed
	}
	return client, nil
}

// close ends the session, and lets no other be opened.
func (r *reader) close(ctx context.Context) error {
	r.mu.Lock()
	client := r.client
	r.closed = true
	r.mu.Unlock()
	if client == nil {
		return nil
	}
	return client.Close(ctx)
}

// seen is a claim with its place.
type seen struct {
	driver.Holder
	place
	get *zk.Call // of the first of its nodes
	way string   // the node of the claim in its way
}

// lookBatch is how many reads go in one flight.
const lookBatch = 1000

// lines reads the lines of locks by their nodes. One that this user may not read is empty if hidden
// is true, and an error otherwise. Of a claim that he may not read no more is known than its node's
// name.
func (r *reader) lines(ctx context.Context, hidden bool, dirs ...string) ([][]seen, error) {
	calls := []*zk.Call{zk.Sync(r.root())}
	for _, dir := range dirs {
		calls = append(calls, zk.Children(dir+waitingPart, false), zk.Children(dir+leasesPart, false), zk.Children(dir, false))
	}
	if err := r.batches(ctx, calls); err != nil {
		return nil, err
	}
	for _, call := range calls {
		if call.Err != nil && call.Code != zk.NoNode && (call.Code != zk.NoAuth || !hidden) {
			return nil, call.Err
		}
	}
	places := make([][]place, len(dirs))
	var gets []*zk.Call
	for i, dir := range dirs {
		waits, leases, top := calls[1+3*i], calls[2+3*i], calls[3+3*i]
		places[i] = append(semaphoreOf(dir, waits.Children, leases.Children, waits.Stat.Czxid), placesOf(dir, top.Children)...)
		for _, p := range places[i] {
			gets = append(gets, zk.Get(p.nodes[0], false))
		}
	}
	if err := r.batches(ctx, gets); err != nil {
		return nil, err
	}
	lines := make([][]seen, len(dirs))
	for i := range dirs {
		var line []place
		for _, p := range places[i] {
			get := gets[0]
			gets = gets[1:]
			switch {
			case get.Code == zk.NoNode, get.Err == nil && get.Stat.Owner == 0:
				continue
			case get.Err != nil && get.Code != zk.NoAuth:
				return lines, get.Err
			}
			line = append(line, p)
			at := len(line) - 1
			s := seen{holderOf(p, get, holds(line, at)), p, get, ""}
			if way := inWay(line, at); !s.Held && way >= 0 {
				s.way = line[way].nodes[0]
			}
			lines[i] = append(lines[i], s)
		}
	}
	return lines, nil
}

// batches asks many calls, some in each flight.
func (r *reader) batches(ctx context.Context, calls []*zk.Call) error {
	for batch := range slices.Chunk(calls, lookBatch) {
		if err := r.ask(ctx, batch...); err != nil {
			return err
		}
	}
	return nil
}
