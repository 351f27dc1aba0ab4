package redissonlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// ear is one connection of this process that listens, to one master; channels come and go on it with the rooms that want
// them.
type ear struct {
	redisstore.Ear
	d    *Driver
	node string
	line *redisconn.Listener

	channels map[string]*station // guarded by the driver's mutex
}

// station is one channel of an ear.
type station struct {
	rooms  map[*room]struct{}
	ready  chan struct{} // closed when the server has confirmed it, or err is set
	err    error
	closed chan struct{} // nil, or closed when the server has been told that nobody listens any more
}

// listen has the room's channel listened to, at the master that owns the name now, and returns when that has confirmed it:
// from then on no message is missed.
func (d *Driver) listen(ctx context.Context, r *room) error {
	for left := redisstore.Dials; ; {
		node := d.conn.Node(r.place.name)
		d.mu.Lock()
		if d.sessions.Closed() {
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
		if e == nil || e.Deaf() {
			e = &ear{Ear: redisstore.NewEar(), d: d, node: node, channels: map[string]*station{}}
			d.ears[node] = e
			go e.open(r.place.name)
		}
		d.mu.Unlock()
		if err := e.Await(ctx); err != nil {
			return fmt.Errorf("redissonlock: %w", err)
		}
		tuned, err := e.tune(ctx, r)
		if err != nil {
			if left--; left == 0 || !e.ended(err) || ctx.Err() != nil {
				return fmt.Errorf("redissonlock: %w", err)
			}
			d.mu.Lock()
			if d.ears[node] == e { // its end may be seen later than that of what was asked of it
				delete(d.ears, node)
			}
			d.mu.Unlock()
		}
		if tuned {
			return nil
		}
	}
}

// ended reports whether a channel was not confirmed since the connection had ended or ended then.
func (e *ear) ended(err error) bool {
	return redisconn.Broken(err) || e.Deaf() && !errors.Is(err, driver.ErrRefused)
}

// tune listens to the room's channel. It reports false where the channel was just being given up.
func (e *ear) tune(ctx context.Context, r *room) (bool, error) {
	d := e.d
	d.mu.Lock()
	st := e.channels[r.channel]
	if st != nil && st.closed != nil {
		d.mu.Unlock()
		return false, redisstore.Await(ctx, st.closed)
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
	if err := redisstore.Await(ctx, st.ready); err != nil {
		return false, err
	}
	if st.err != nil {
		return false, redisstore.Unheard(st.err)
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
	line, err := d.conn.Listen(ctx, name, d.sharded, func(channel, _ string) { e.hear(channel) })
	cancel()
	if err == nil && line.Node != e.node {
		line.Close()
		err = fmt.Errorf("the slot of %q has moved from %s to %s", name, e.node, line.Node)
	}
	if err != nil {
		e.Settle(nil, nil, err)
	} else {
		e.line = line
		e.Settle(line.Done, line.Close, nil)
	}
	if !e.Listen(d.ctx) {
		return
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
			r.stir()
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
