package redissonlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// listener is one connection of this process for subscriptions, at one master. It is subscribed to
// the channels of the groups that need it.
type listener struct {
	redisstore.PubSub
	in   *groups
	node string
	line *redisconn.Listener

	channels map[string]*channel // guarded by the mutex of groups
}

// channel is one channel of a listener.
type channel struct {
	groups map[*group]struct{} // that need it
	ready  chan struct{}       // closed when the server has confirmed it, or err is set
	err    error
	closed chan struct{} // nil, or closed when the unsubscription is answered
}

// listen subscribes to the group's channel, at the master that owns the name now, and returns once
// the subscription is confirmed. No message after that is missed.
func (all *groups) listen(ctx context.Context, g *group) error {
	for left := redisstore.MaxDials; ; {
		node := all.store.Conn.Node(g.place.name)
		l, err := all.listenerAt(g, node)
		if l == nil || err != nil {
			return err
		}
		if err := l.Await(ctx); err != nil {
			return fmt.Errorf("redissonlock: %w", err)
		}
		done, err := l.subscribeFor(ctx, g)
		if err != nil {
			if left--; left == 0 || !l.ended(err) || ctx.Err() != nil {
				return fmt.Errorf("redissonlock: %w", err)
			}
			all.mu.Lock()
			if all.listeners[node] == l { // its end may be seen later than the error of the request
				delete(all.listeners, node)
			}
			all.mu.Unlock()
		}
		if done {
			return nil
		}
	}
}

// listenerAt returns the listener at a master, which is made if it is missing; nil if it is
// subscribed for the group already.
func (all *groups) listenerAt(g *group, node string) (*listener, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.closed:
		return nil, fmt.Errorf("redissonlock: %w: the driver is closed", driver.ErrNotSent)
	case all.all[g.place] != g:
		return nil, fmt.Errorf("redissonlock: subscribe: %w: nobody waits any more", driver.ErrNotSent)
	case g.subscribed() && g.by.node == node:
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	l := all.listeners[node]
	if l == nil || l.Lost() {
		l = &listener{PubSub: redisstore.NewPubSub(), in: all, node: node, channels: map[string]*channel{}}
		all.listeners[node] = l
		go l.open(g.place.name)
	}
	return l, nil
}

// ended reports whether a channel was not confirmed since the connection had ended or ended then.
func (l *listener) ended(err error) bool {
	return redisconn.Broken(err) || l.Lost() && !errors.Is(err, driver.ErrRefused)
}

// subscribeFor subscribes to the group's channel. It returns false, for another try, if the channel
// was just being unsubscribed.
func (l *listener) subscribeFor(ctx context.Context, g *group) (bool, error) {
	ch, release := l.want(g)
	if release != nil {
		return false, redisstore.AwaitSubscribe(ctx, release)
	}
	if err := redisstore.AwaitSubscribe(ctx, ch.ready); err != nil {
		return false, err
	}
	if ch.err != nil {
		return false, redisstore.SubscribeError(ch.err)
	}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if _, still := ch.groups[g]; !still {
		return false, nil
	}
	g.by = l
	return true, nil
}

// want adds the group to those that need its channel. If the channel is being unsubscribed, want
// returns a channel instead that is closed when that is over.
func (l *listener) want(g *group) (*channel, <-chan struct{}) {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	ch := l.channels[g.channel]
	if ch != nil && ch.closed != nil {
		return nil, ch.closed
	}
	if ch == nil {
		ch = &channel{groups: map[*group]struct{}{}, ready: make(chan struct{})}
		l.channels[g.channel] = ch
		go l.subscribe(g.channel, ch)
	}
	if g.by != nil && g.by != l {
		g.by.drop(g)
	}
	ch.groups[g] = struct{}{}
	return ch, nil
}

func (l *listener) subscribe(name string, ch *channel) {
	ctx, cancel := context.WithTimeout(l.in.store.Ctx, l.in.store.Timeout)
	defer cancel()
	ch.err = l.line.Subscribe(ctx, name)
	close(ch.ready)
	if ch.err != nil {
		l.in.mu.Lock()
		delete(l.channels, name)
		l.in.mu.Unlock()
	}
}

// drop ends the subscription for a group. The last group that needs a channel unsubscribes it. The
// caller holds the mutex.
func (l *listener) drop(g *group) {
	if g.by == l {
		g.by = nil
	}
	ch := l.channels[g.channel]
	if ch == nil {
		return
	}
	delete(ch.groups, g)
	if len(ch.groups) == 0 && ch.closed == nil {
		ch.closed = make(chan struct{})
		go l.unsubscribe(g.channel, ch)
	}
}

func (l *listener) unsubscribe(name string, ch *channel) {
	<-ch.ready
	ctx, cancel := context.WithTimeout(l.in.store.Ctx, l.in.store.Timeout)
	defer cancel()
	l.line.Unsubscribe(ctx, name)
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if l.channels[name] == ch {
		delete(l.channels, name)
	}
	close(ch.closed)
}

// open connects, and when the connection ends makes every group that relied on it ask again.
func (l *listener) open(name string) {
	all := l.in
	ctx, cancel := context.WithTimeout(all.store.Ctx, all.store.Timeout)
	line, err := all.store.Conn.Listen(ctx, name, all.sharded, func(channel, _ string) { l.onMessage(channel) })
	cancel()
	if err == nil && line.Node != l.node {
		line.Close()
		err = fmt.Errorf("the slot of %q has moved from %s to %s", name, l.node, line.Node)
	}
	if err != nil {
		l.Resolve(nil, nil, err)
	} else {
		l.line = line
		l.Resolve(line.Done, line.Close, nil)
	}
	if !l.AwaitLost(all.store.Ctx) {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.listeners[l.node] == l {
		delete(all.listeners, l.node)
	}
	for _, ch := range l.channels {
		for g := range ch.groups {
			if g.by == l {
				g.by = nil
			}
			g.recheck()
		}
	}
}

// onMessage handles a message. The payload is ignored: a waiter asks the server.
func (l *listener) onMessage(name string) {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if ch := l.channels[name]; ch != nil {
		for g := range ch.groups {
			g.recheck()
		}
	}
}

// slotsMoved makes groups ask again whose slot has moved to another master.
func (all *groups) slotsMoved() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, g := range all.all {
		if g.by != nil && g.by.node != all.store.Conn.Node(g.place.name) {
			g.by.drop(g)
			g.recheck()
		}
	}
}

// close ends all listeners, or returns when ctx ends.
func (all *groups) close(ctx context.Context) {
	all.mu.Lock()
	listeners := all.listeners
	all.listeners, all.closed = nil, true
	all.sweeper.Stop()
	all.mu.Unlock()
	for _, l := range listeners {
		l.Close(ctx)
	}
}
