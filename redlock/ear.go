package redlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// ear is one subscription of this process, to one master. Its channel is new with each connection, so that a message to
// the channel reaches exactly this connection or nobody: a script that is told "nobody" knows that whoever wrote the
// channel beside its claim is dead or will ask again.
type ear struct {
	redisstore.PubSub
	channel string
	begun   time.Time
	first   bool // of this master
}

// hearing is the ear at one master, and the channel of the next one.
type hearing struct {
	mu   sync.Mutex
	ear  *ear
	next string
}

// channel is the channel of the ear, or of the next one.
func (n *node) channel() string {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	if e := n.hearing.ear; e != nil && !e.Lost() {
		return e.channel
	}
	if n.hearing.next == "" {
		n.hearing.next = newChannel()
	}
	return n.hearing.next
}

// A master that does not let us subscribe is asked again after pause. Nobody waits for a subscription that takes the place of
// another: the other masters decide meanwhile.
const pause = 100 * time.Millisecond

// listen returns the ear at the master, and makes it if it is missing. No ID enters a line before its channel is confirmed:
// a master that is given to it by a message that nobody hears would skip the claim.
func (n *node) listen() *ear {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	e := n.hearing.ear
	if e == nil || e.Lost() && time.Since(e.begun) > pause {
		if n.hearing.next == "" {
			n.hearing.next = newChannel()
		}
		e = &ear{channel: n.hearing.next, begun: time.Now(), first: e == nil, PubSub: redisstore.NewPubSub()}
		n.hearing.ear, n.hearing.next = e, ""
		go n.open(e)
	}
	return e
}

// confirmed returns nil if the master has confirmed the subscription, or why it has not.
func (e *ear) confirmed(ctx context.Context, n *node) error {
	err := errNoAnswer
	if e.Resolved() {
		err = e.Await(ctx)
	}
	if err != nil {
		return fmt.Errorf("redlock: %s: %w", n.name, err)
	}
	return nil
}

var errNoAnswer = fmt.Errorf("subscribe: %w: no answer yet", driver.ErrNotSent)

// open subscribes, and when the subscription ends has every claim that relied on it ask again. What is held asks then, too, and once
// more when there is another one. While something is held one that failed is tried again.
func (n *node) open(e *ear) {
	ctx, cancel := context.WithTimeout(n.d.ctx, n.d.options.NodeTimeout*4)
	err := e.Subscribe(ctx, n.conn, "", membership.RecordKey, e.channel, func(payload string) { n.d.observer.hear(n, payload) })
	cancel()
	if err == nil {
		n.d.observer.subscribed(n, !e.first)
	}
	if e.AwaitLost(n.d.ctx) {
		n.d.observer.silenced(n, err == nil)
	}
}

// confirms reports whether the master has confirmed the subscription, which stands.
func (n *node) confirms() bool {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	e := n.hearing.ear
	return e != nil && e.Resolved() && !e.Lost()
}

// hearsBy reports whether what is told on a channel is heard.
func (n *node) hearsBy(channel string) bool {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	e := n.hearing.ear
	return e != nil && e.channel == channel && !e.Lost()
}

func (n *node) hears() bool {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	return n.hearing.ear != nil && !n.hearing.ear.Lost()
}
