package redisstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

func TestPubSubStandsFromItsConfirmationUntilItsConnectionEnds(t *testing.T) {
	p := NewPubSub()
	if p.Resolved() || p.Lost() {
		t.Error("a PubSub that is being made is said to be resolved, or lost")
	}
	done := make(chan struct{})
	go p.Resolve(done, func() { close(done) }, nil)
	if err := p.Await(t.Context()); err != nil || p.Lost() {
		t.Errorf("%v, lost %v; want a subscription that stands", err, p.Lost())
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if p.AwaitLost(ctx) {
		t.Error("a connection that was closed is said to have ended by itself")
	}
	if !p.Lost() {
		t.Error("a subscription whose connection has ended is not lost")
	}
	if !p.AwaitLost(t.Context()) {
		t.Error("a connection that has ended is said to have been closed just now")
	}
}

// Whatever goes wrong before a subscription is confirmed, nothing was changed, so that a claim
// which needed it is not in doubt.
func TestASubscriptionThatFailsChangedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPubSub()
		cause := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if err := p.Await(ctx); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, cause) {
			t.Errorf("got %v, want ErrNotSent and why nobody waits any more", err)
		}
		p.Resolve(nil, nil, errors.New("reset"))
		if err := p.Await(t.Context()); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("got %v, want ErrNotSent", err)
		}
		if !p.Lost() || !p.AwaitLost(t.Context()) {
			t.Error("a subscription that failed is not lost")
		}
		p.Close(t.Context())
	})
}

// confirmed is a connection whose master b confirms every subscription.
type confirmed struct {
	redisconn.Conn
	done chan struct{} // closed when the subscription is
}

func (c confirmed) Subscribe(context.Context, string, string, func(string)) (*redisconn.Subscription, error) {
	return redisconn.NewSubscription("b", c.done, func() { close(c.done) }), nil
}

// A subscription at another master than that of the key gets none of its messages: they are
// published at the key's own.
func TestASubscriptionAtAnotherMasterIsNone(t *testing.T) {
	for node, stands := range map[string]bool{"": true, "b": true, "a": false} {
		p, c := NewPubSub(), confirmed{done: make(chan struct{})}
		err := p.Subscribe(t.Context(), c, node, "k", "channel", nil)
		if (err == nil) != stands || !p.Resolved() || p.Lost() == stands {
			t.Errorf("wanted master %q, b confirms: %v, resolved %v, lost %v; want it to stand: %v", node, err, p.Resolved(), p.Lost(), stands)
		}
		if stands {
			p.Close(t.Context())
		}
		select {
		case <-c.done:
		default:
			t.Errorf("wanted master %q: the connection stays", node)
		}
	}
}

// The end of a subscription does not wait for a server that does not answer any more.
func TestTheEndOfASubscriptionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPubSub()
		ended := make(chan struct{})
		p.Resolve(make(chan struct{}), func() {
			defer close(ended)
			time.Sleep(time.Minute)
		}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		p.Close(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("closed after %v, want after the second that the caller has", took)
		}
		<-ended
	})
}
