package redissonlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mutant"
	"github.com/interlock-go/interlock/redisconn"
)

// ear is one connection of this process that listens, to one master; channels come and go on it with the rooms that want
// them.
type ear struct {
	d     *Driver
	node  string
	ready chan struct{} // closed when line or err is set
	line  *redisconn.Listener
	err   error

	channels map[string]*station // guarded by the driver's mutex
}

// station is one channel of an ear.
type station struct {
	rooms  map[*room]struct{}
	ready  chan struct{} // closed when the server has confirmed it, or err is set
	err    error
	closed chan struct{} // nil, or closed when the server has been told that nobody listens any more
}

// deaf reports whether the connection has ended.
func (e *ear) deaf() bool {
	select {
	case <-e.ready:
	default:
		return false
	}
	if e.err != nil {
		return true
	}
	select {
	case <-e.line.Done:
		return true
	default:
		return false
	}
}

// listen has the room's channel listened to, at the master that owns the name now, and returns when that has confirmed it:
// from then on no message is missed.
func (d *Driver) listen(ctx context.Context, r *room) error {
	for {
		node := d.conn.Node(r.place.name)
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			return errClosed
		}
		if d.rooms[r.place] != r {
			d.mu.Unlock()
			return fmt.Errorf("redissonlock: subscribe: %w: nobody waits any more", driver.ErrNotSent)
		}
		if r.listens() && r.ear.node == node {
			d.mu.Unlock()
			return nil
		}
		e := d.ears[node]
		if e == nil || e.deaf() {
			e = &ear{d: d, node: node, ready: make(chan struct{}), channels: map[string]*station{}}
			d.ears[node] = e
			go e.open(r.place.name)
		}
		d.mu.Unlock()
		if err := await(ctx, e.ready); err != nil {
			return err
		}
		if e.err != nil {
			return unheard(e.err)
		}
		tuned, err := e.tune(ctx, r)
		if tuned || err != nil {
			return err
		}
	}
}

// await waits for something that nothing was sent for yet.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redissonlock: subscribe: %w: %w", driver.ErrNotSent, ctx.Err())
	}
}

// unheard says why nobody listens. Nothing was changed by trying to.
func unheard(err error) error {
	err = redisconn.Classify(err)
	if !errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent) {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return fmt.Errorf("redissonlock: subscribe: %w", err)
}

// tune listens to the room's channel. It reports false where the channel was just being given up.
func (e *ear) tune(ctx context.Context, r *room) (bool, error) {
	d := e.d
	d.mu.Lock()
	st := e.channels[r.channel]
	if st != nil && st.closed != nil {
		d.mu.Unlock()
		return false, await(ctx, st.closed)
	}
	if st == nil {
		st = &station{rooms: map[*room]struct{}{}, ready: make(chan struct{})}
		e.channels[r.channel] = st
		go e.subscribe(r.channel, st)
	}
	if r.ear != nil && r.ear != e {
		r.ear.drop(r)
	}
	st.rooms[r] = struct{}{}
	d.mu.Unlock()
	if err := await(ctx, st.ready); err != nil {
		return false, err
	}
	if st.err != nil {
		return false, unheard(st.err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, still := st.rooms[r]; !still {
		return false, nil
	}
	r.ear = e
	return true, nil
}

func (e *ear) subscribe(channel string, st *station) {
	ctx, cancel := context.WithTimeout(e.d.ctx, e.d.options.Timeout)
	defer cancel()
	st.err = e.line.Subscribe(ctx, channel)
	close(st.ready)
	if st.err != nil {
		e.d.mu.Lock()
		delete(e.channels, channel)
		e.d.mu.Unlock()
	}
}

// drop has a room heard no more. The channel goes with the last room that wants it. d.mu is held.
func (e *ear) drop(r *room) {
	if r.ear == e {
		r.ear = nil
	}
	st := e.channels[r.channel]
	if st == nil {
		return
	}
	delete(st.rooms, r)
	if len(st.rooms) > 0 || st.closed != nil {
		return
	}
	st.closed = make(chan struct{})
	go func() {
		<-st.ready
		ctx, cancel := context.WithTimeout(e.d.ctx, e.d.options.Timeout)
		defer cancel()
		e.line.Unsubscribe(ctx, r.channel)
		e.d.mu.Lock()
		defer e.d.mu.Unlock()
		if e.channels[r.channel] == st {
			delete(e.channels, r.channel)
		}
		close(st.closed)
	}()
}

// open connects, and when the connection ends has every room that relied on it ask again.
func (e *ear) open(name string) {
	d := e.d
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	e.line, e.err = d.conn.Listen(ctx, name, d.sharded, func(channel, _ string) { e.hear(channel) })
	if e.err == nil && e.line.Node != e.node {
		e.line.Close()
		e.err = fmt.Errorf("the slot of %q has moved from %s to %s", name, e.node, e.line.Node)
	}
	cancel()
	close(e.ready)
	if e.err == nil {
		select {
		case <-e.line.Done:
		case <-d.ctx.Done():
			e.line.Close()
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ears[e.node] == e {
		delete(d.ears, e.node)
	}
	for _, st := range e.channels {
		for r := range st.rooms {
			if r.ear == e {
				r.ear = nil
			}
			if !mutant.On("redisson-deaf") {
				r.stir()
			}
		}
	}
}

// hear takes in a message. What it says does not matter: who waits asks.
func (e *ear) hear(channel string) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if st := e.channels[channel]; st != nil {
		for r := range st.rooms {
			r.stir()
		}
	}
}

// follow has rooms ask again whose slot has moved to another master.
func (d *Driver) follow(moves <-chan struct{}) {
	for {
		select {
		case <-moves:
		case <-d.ctx.Done():
			return
		}
		d.mu.Lock()
		for _, r := range d.rooms {
			if r.ear != nil && r.ear.node != d.conn.Node(r.place.name) {
				r.ear.drop(r)
				r.stir()
			}
		}
		d.mu.Unlock()
	}
}
