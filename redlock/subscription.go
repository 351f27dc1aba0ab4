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

// subscription is one of this process, to one master. Its channel is new with each connection, so
// that a message to the channel reaches exactly this connection or nobody: a script that is told
// "nobody" knows that the process that wrote the channel beside its claim is dead or will ask
// again.
type subscription struct {
	redisstore.PubSub
	channel string
	begun   time.Time
	first   bool // of this master
}

// subscriptions are those to one master: the current one, and the channel of the next one.
type subscriptions struct {
	mu      sync.Mutex
	current *subscription
	next    string
}

// channel returns the channel of the subscription, or of the next one.
func (n *node) channel() string {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	if e := n.subs.current; e != nil && !e.Lost() {
		return e.channel
	}
	if n.subs.next == "" {
		n.subs.next = newChannel()
	}
	return n.subs.next
}

// A master that does not let us subscribe is asked again after pause. Nobody waits for a
// subscription that takes the place of another: the other masters decide meanwhile.
const pause = 100 * time.Millisecond

// subscribe returns the subscription to the master, and makes it if it is missing. No ID enters a
// line before its channel is confirmed: a master that is given to it by a message that nobody hears
// would skip the claim.
func (n *node) subscribe() *subscription {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	e := n.subs.current
	if e == nil || e.Lost() && time.Since(e.begun) > pause {
		if n.subs.next == "" {
			n.subs.next = newChannel()
		}
		e = &subscription{channel: n.subs.next, begun: time.Now(), first: e == nil, PubSub: redisstore.NewPubSub()}
		n.subs.current, n.subs.next = e, ""
		go n.listen(e)
	}
	return e
}

// confirmed returns nil if the master has confirmed the subscription, or why it has not.
func (e *subscription) confirmed(ctx context.Context, n *node) error {
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

// listen makes the subscription and tells the observer when it is confirmed, and when it has ended
// or has failed.
func (n *node) listen(e *subscription) {
	ctx, cancel := context.WithTimeout(n.d.ctx, n.d.options.NodeTimeout*4)
	err := e.Subscribe(ctx, n.conn, "", membership.RecordKey, e.channel, func(payload string) { n.d.observer.message(n, payload) })
	cancel()
	if err == nil {
		n.d.observer.subscribed(n, !e.first)
	}
	if e.AwaitLost(n.d.ctx) {
		n.d.observer.subscriptionLost(n, err == nil)
	}
}

// subscribed reports whether the master has confirmed the subscription, which stands.
func (n *node) subscribed() bool {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	e := n.subs.current
	return e != nil && e.Resolved() && !e.Lost()
}

// subscribedTo reports whether what is told on a channel is heard.
func (n *node) subscribedTo(channel string) bool {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	e := n.subs.current
	return e != nil && e.channel == channel && !e.Lost()
}

func (n *node) hasSubscription() bool {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	return n.subs.current != nil && !n.subs.current.Lost()
}
