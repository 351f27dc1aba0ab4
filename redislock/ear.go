package redislock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mutant"
	"github.com/interlock-go/interlock/redisconn"
)

// ear is one subscription of this process, to one master. Its channel is new with each connection, so that a message to
// the channel reaches exactly this connection or nobody: a script that is told "nobody" knows that whoever wrote the
// channel beside its claim is dead or will ask again. On a cluster a master counts only its own subscribers, which is
// why there is an ear for each master with a name that is waited for.
type ear struct {
	node    string
	channel string
	ready   chan struct{} // closed when sub or err is set
	sub     *redisconn.Subscription
	err     error
}

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
	case <-e.sub.Done:
		return true
	default:
		return false
	}
}

// channels begins the names of all channels.
const channels = "il:push:"

// channel is the channel of the ear at a master, or of the next one there. d.mu is held.
func (d *Driver) channel(node string) string {
	if e := d.ears[node]; e != nil && !e.deaf() {
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

// An operator who breaks a claim tells its process by the channel in the claim's value. A process that never waits has
// no subscription; it makes one when it has held something for this long, and then looks whether it was told before.
const quiet = 500 * time.Millisecond

func (d *Driver) listenSoon() {
	if d.soon.CompareAndSwap(false, true) {
		d.quiet.Reset(quiet)
	}
}

// listenForHolders subscribes at the masters of what is held.
func (d *Driver) listenForHolders() {
	d.soon.Store(false)
	d.mu.Lock()
	sessions := slices.Collect(maps.Keys(d.sessions))
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	defer cancel()
	for _, s := range sessions {
		names := map[string]string{} // by master
		s.mu.Lock()
		alone, _, _ := s.standing()
		for _, c := range alone {
			names[d.conn.Node(c.Name)] = c.Name
		}
		s.mu.Unlock()
		for node, name := range names {
			d.mu.Lock()
			e := d.ears[node]
			d.mu.Unlock()
			if e != nil && !e.deaf() {
				continue
			}
			if _, err := d.listen(ctx, name); err == nil {
				s.nudged()
			}
		}
	}
}

// listen returns the ear at the master that owns key, and makes it if it is missing. No ID enters a line before its
// channel is confirmed: a grant that nobody hears would skip the claim.
func (d *Driver) listen(ctx context.Context, key string) (*ear, error) {
	node := d.conn.Node(key)
	if mutant.On("R10") {
		node = key
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, errClosed
	}
	e := d.ears[node]
	if e == nil || e.deaf() {
		e = &ear{node: node, channel: d.channel(node), ready: make(chan struct{})}
		delete(d.channels, node)
		d.ears[node] = e
		go d.open(e, key)
	}
	d.mu.Unlock()
	if mutant.On("redis-subscribe-late") {
		return e, nil
	}
	select {
	case <-e.ready:
	case <-ctx.Done():
		return nil, fmt.Errorf("redislock: subscribe: %w: %w", driver.ErrNotSent, ctx.Err())
	}
	if e.err != nil {
		err := redisconn.Classify(e.err)
		if !errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent) {
			err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
		}
		return nil, fmt.Errorf("redislock: subscribe: %w", err)
	}
	return e, nil
}

// open subscribes, and when the subscription ends has every claim that relied on it ask again.
func (d *Driver) open(e *ear, key string) {
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	if mutant.On("redis-node") {
		key = "x"
	}
	e.sub, e.err = d.conn.Subscribe(ctx, key, e.channel, d.hear)
	if e.err == nil && e.sub.Node != e.node && !mutant.On("R10") {
		e.sub.Close()
		e.err = fmt.Errorf("the slot of %q has moved from %s to %s", key, e.node, e.sub.Node)
	}
	cancel()
	close(e.ready)
	if e.err == nil {
		select {
		case <-e.sub.Done:
		case <-d.ctx.Done():
			e.sub.Close()
			return
		}
	}
	d.mu.Lock()
	if d.ears[e.node] == e {
		delete(d.ears, e.node)
	}
	sessions := slices.Collect(maps.Keys(d.sessions))
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
		d.mu.Lock()
		sessions := slices.Collect(maps.Keys(d.sessions))
		d.mu.Unlock()
		for _, s := range sessions {
			s.displaced()
		}
	}
}

// displaced has every claim that stands in a line at another master than that of its ear ask again.
func (s *session) displaced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if c.state == waiting && c.ear != nil && c.ear.node != s.d.conn.Node(c.Name) {
			c.recheck.At = time.Now()
			c.changed()
		}
	}
}

// recheck has a waiting claim ask for its state.
func (s *session) recheck(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[id]; c != nil && c.state == waiting {
		c.recheck.At = time.Now()
		c.changed()
	}
}

// hear takes in a message: its first letter says what it is, the ID behind it whom it is for. The ID is a secret of the
// store and its owner; a message with one that nobody here has is ignored.
func (d *Driver) hear(payload string) {
	f := strings.Fields(payload)
	if len(f) < 2 {
		return
	}
	d.mu.Lock()
	s := d.listeners[f[1]]
	d.mu.Unlock()
	if s == nil {
		return
	}
	var n [2]int64
	for i := range min(len(f)-2, 2) {
		n[i], _ = strconv.ParseInt(f[i+2], 10, 64)
	}
	switch f[0] {
	case "h": // held: counter, and whether others wait
		s.promoted(f[1], n[0], n[1] == 1)
	case "g": // a gap for other programs: ms until it ends
		s.gap(f[1], n[0])
	case "x": // gone
		s.told(f[1])
	case "r": // passed over: the slot has moved to a master that this process does not listen to
		d.conn.Doubt()
		s.recheck(f[1])
	case "n": // broken, with its time left to finish
		s.nudged()
	}
}
