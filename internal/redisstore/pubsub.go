package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// PubSub is one connection of a process that is subscribed at a master, from before it is made
// until it has ended. It is resolved when the subscription is confirmed or has failed, and lost
// when it has failed or ended. No ID enters a line before a PubSub is resolved and not lost: the
// message of a grant would reach nobody, and the script would skip the claim.
type PubSub struct {
	ready chan struct{} // closed when it is resolved: what follows is set
	done  <-chan struct{}
	end   func()
	err   error
}

// MaxDials is how many connections in a row may end before they have confirmed a channel. The
// first, as a rule, had ended while it was idle, which shows only when it is used.
const MaxDials = 8

// NewPubSub returns a PubSub whose connection is being made. The caller makes it, and calls
// Resolve.
func NewPubSub() PubSub { return PubSub{ready: make(chan struct{})} }

// Resolve records that the subscription stands until done is closed, or why there is none. end
// closes the connection.
func (p *PubSub) Resolve(done <-chan struct{}, end func(), err error) {
	p.done, p.end, p.err = done, end, err
	close(p.ready)
}

// Subscribe connects, subscribes to one channel, for a key, and resolves p. Where node is not
// empty, the master that confirms must be this one: a key may have moved since the caller looked it
// up.
func (p *PubSub) Subscribe(ctx context.Context, conn redisconn.Conn, node, key, channel string, onMessage func(payload string)) error {
	sub, err := conn.Subscribe(ctx, key, channel, onMessage)
	if err == nil && node != "" && sub.Node != node {
		sub.Close()
		err = fmt.Errorf("the slot of %q has moved from %s to %s", key, node, sub.Node)
	}
	if err != nil {
		p.Resolve(nil, nil, err)
		return err
	}
	p.Resolve(sub.Done, sub.Close, nil)
	return nil
}

// Resolved reports whether the subscription is confirmed or has failed.
func (p *PubSub) Resolved() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// Lost reports whether the subscription has failed or its connection has ended.
func (p *PubSub) Lost() bool {
	if !p.Resolved() {
		return false
	}
	if p.err != nil {
		return true
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Await waits until p is resolved and returns why there is no subscription. Trying to has changed
// nothing.
func (p *PubSub) Await(ctx context.Context) error {
	if !p.Resolved() { // else ctx may never have to make a channel for its end
		if err := AwaitSubscribe(ctx, p.ready); err != nil {
			return err
		}
	}
	return SubscribeError(p.err)
}

// AwaitSubscribe waits for a subscription before anything else is sent that needs it.
func AwaitSubscribe(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("subscribe: %w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
}

// SubscribeError classifies why there is no subscription: refused, or not sent in the sense that
// nothing was changed.
func SubscribeError(err error) error {
	if err == nil {
		return nil
	}
	err = redisconn.Classify(err)
	if !errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent) {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return fmt.Errorf("subscribe: %w", err)
}

// AwaitLost waits until a resolved p is lost, or ends its connection with ctx. It reports whether
// the subscription ended by itself, or never was.
func (p *PubSub) AwaitLost(ctx context.Context) bool {
	if p.err != nil {
		return true
	}
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		p.end()
		return false
	}
}

// Close ends the connection, also one that is still being made. It returns when ctx ends, if that
// is first: a client sends QUIT to the server before it closes a connection, and waits for the
// answer.
func (p *PubSub) Close(ctx context.Context) {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return
	}
	if p.err == nil {
		within(ctx, p.end)
	}
}
