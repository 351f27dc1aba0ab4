package redislock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// ear is one subscription of this process, to one master. Its channel is new with each connection, so that a message to
// the channel reaches exactly this connection or nobody: a script that is told "nobody" knows that whoever wrote the
// channel beside its claim is dead or will ask again. On a cluster a master counts only its own subscribers, which is
// why there is an ear for each master with a name that is waited for.
type ear struct {
	redisstore.Ear
	node    string
	channel string
}

// channels begins the names of all channels.
const channels = "il:push:"

// channel is the channel of the ear at a master, or of the next one there. d.mu is held.
func (d *Driver) channel(node string) string {
	if e := d.ears[node]; e != nil && !e.Deaf() {
		return e.channel
	}
	c, ok := d.channels[node]
	if !ok {
		c = channels + driver.NewID()
		if node != "" {
			c = channels + "=" + driver.NewID() // one of several masters: see line.lua
		}
		d.channels[node] = c
	}
	return c
}

// listenForHolders subscribes at the masters of what is held, until it hears each of them. What stands there may have been broken before
// that, or lost with the server's memory, so a renewal looks.
func (d *Driver) listenForHolders() {
	sessions := d.sessions.All()
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	defer cancel()
	for _, s := range sessions {
		names := map[string]string{} // by master
		s.mu.Lock()
		alone, shared, waits, _ := s.standing()
		for _, c := range slices.Concat(alone, shared, waits) {
			names[d.conn.Node(c.Name)] = c.Name
		}
		s.mu.Unlock()
		for node, name := range names {
			d.mu.Lock()
			e := d.ears[node]
			d.mu.Unlock()
			if e != nil && !e.Deaf() {
				continue
			}
			if _, err := d.listen(ctx, name); err == nil {
				s.Hurry()
			} else {
				d.holding.Began() // it tries again
			}
		}
	}
}

// listen returns the ear at the master that owns key, and makes it if it is missing. No ID enters a line before its
// channel is confirmed: a grant that nobody hears would skip the claim.
func (d *Driver) listen(ctx context.Context, key string) (*ear, error) {
	for left := redisstore.Dials; ; {
		e, err := d.ear(key)
		if err != nil {
			return nil, err
		}
		if err = e.Await(ctx); err == nil {
			return e, nil
		}
		if left--; left == 0 || !redisconn.Broken(err) || ctx.Err() != nil {
			return nil, fmt.Errorf("redislock: %w", err)
		}
	}
}

// ear returns the ear at the master that owns key, whose connection may still be being made. A deaf one is replaced.
func (d *Driver) ear(key string) (*ear, error) {
	node := d.conn.Node(key)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sessions.Closed() {
		return nil, errClosed
	}
	e := d.ears[node]
	if e == nil || e.Deaf() {
		e = &ear{Ear: redisstore.NewEar(), node: node, channel: d.channel(node)}
		delete(d.channels, node)
		d.ears[node] = e
		go d.open(e, key)
	}
	return e, nil
}

// open subscribes, and when the subscription ends has every claim that relied on it ask again.
func (d *Driver) open(e *ear, key string) {
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	_ = e.Subscribe(ctx, d.conn, e.node, key, e.channel, d.hear) // who awaits the ear hears of it
	cancel()
	if !e.Listen(d.ctx) {
		return
	}
	d.mu.Lock()
	if d.ears[e.node] == e {
		delete(d.ears, e.node)
	}
	sessions := d.sessions.All()
	d.mu.Unlock()
	for _, s := range sessions {
		s.deafened(e)
	}
}

// follow has claims ask again whose slot has moved to another master: the channel beside them in line is one that this
// master cannot reach.
func (d *Driver) follow(moves <-chan struct{}) {
	for {
		select {
		case <-moves:
		case <-d.ctx.Done():
			return
		}
		for _, s := range d.sessions.All() {
			s.displaced()
		}
	}
}

// displaced has every claim that stands in a line at another master than that of its ear ask again.
func (s *session) displaced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if c.state <= waiting && c.ear != nil && c.ear.node != s.d.conn.Node(c.Name) {
			c.ask()
		}
	}
}

// recheck has a waiting claim ask for its state.
func (s *session) recheck(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[id]; c != nil {
		c.ask()
	}
}

// hear takes in a message for a claim.
func (d *Driver) hear(payload string) {
	m, s, ok := d.audience.Hear(payload)
	if m.Letter == "x" || m.Letter == "n" { // gone, or broken with its time left to finish: also a claim that never waited
		for _, s := range d.sessions.All() {
			s.told(m)
		}
		return
	}
	if !ok {
		return
	}
	switch m.Letter {
	case "h": // held: counter, and whether others wait
		s.promoted(m.ID, m.Numbers[0], m.Numbers[1] == 1)
	case "g": // the first in line is to look: after so many ms, as when a gap for other programs ends
		s.gap(m.ID, m.Numbers[0])
	case "r": // passed over: the slot has moved to a master that this process does not listen to
		d.conn.Doubt()
		s.recheck(m.ID)
	}
}
