package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// Ear is one connection of a process that listens to a master, from before it is made until it has ended. No ID enters a
// line before an ear is settled and not deaf: a grant that nobody hears would skip the claim.
type Ear struct {
	ready chan struct{} // closed when it is settled: what follows is set
	done  <-chan struct{}
	end   func()
	err   error
}

// Dials is how many connections in a row may end before they have confirmed a channel: the first, as a rule, had ended while it was
// idle, which nobody had seen yet.
const Dials = 8

// NewEar returns an ear whose connection is being made; whoever makes it calls Settle.
func NewEar() Ear { return Ear{ready: make(chan struct{})} }

// Settle says that the ear hears until done is closed, or why it does not. end closes the connection.
func (e *Ear) Settle(done <-chan struct{}, end func(), err error) {
	e.done, e.end, e.err = done, end, err
	close(e.ready)
}

// Subscribe makes the connection of an ear that hears one channel, for a key, and settles it. Where node is not empty, the master that confirms
// must be this one: a key may have moved since somebody has looked where it is.
func (e *Ear) Subscribe(ctx context.Context, conn redisconn.Conn, node, key, channel string, heard func(payload string)) error {
	sub, err := conn.Subscribe(ctx, key, channel, heard)
	if err == nil && node != "" && sub.Node != node {
		sub.Close()
		err = fmt.Errorf("the slot of %q has moved from %s to %s", key, node, sub.Node)
	}
	if err != nil {
		e.Settle(nil, nil, err)
		return err
	}
	e.Settle(sub.Done, sub.Close, nil)
	return nil
}

// Settled reports whether the ear hears, or never will.
func (e *Ear) Settled() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// Deaf reports whether the connection has failed or ended.
func (e *Ear) Deaf() bool {
	if !e.Settled() {
		return false
	}
	if e.err != nil {
		return true
	}
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// Await waits until the ear is settled and says why it does not hear. Nothing was changed by trying to.
func (e *Ear) Await(ctx context.Context) error {
	if !e.Settled() { // else ctx may never have to make a channel for its end
		if err := Await(ctx, e.ready); err != nil {
			return err
		}
	}
	return Unheard(e.err)
}

// Await waits for a subscription that nothing else was sent for yet.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("subscribe: %w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
}

// Unheard classifies why there is no subscription: refused, or not sent in the sense that nothing was changed.
func Unheard(err error) error {
	if err == nil {
		return nil
	}
	err = redisconn.Classify(err)
	if !errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent) {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return fmt.Errorf("subscribe: %w", err)
}

// Listen waits until the connection has ended, or ends it with ctx. It reports whether it ended by itself, or never was.
func (e *Ear) Listen(ctx context.Context) bool {
	if e.err != nil {
		return true
	}
	select {
	case <-e.done:
		return true
	case <-ctx.Done():
		e.end()
		return false
	}
}

// Close ends the connection, also one that is still being made. It returns when ctx ends, if that is first: a client says farewell to the
// server before it closes a connection, and one that does not answer keeps it waiting.
func (e *Ear) Close(ctx context.Context) {
	select {
	case <-e.ready:
	case <-ctx.Done():
		return
	}
	if e.err == nil {
		within(ctx, e.end)
	}
}
