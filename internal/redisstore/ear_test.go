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

func TestAnEarHearsFromItsSettlingUntilItsConnectionEnds(t *testing.T) {
	e := NewEar()
	if e.Settled() || e.Deaf() {
		t.Error("an ear that is being made is said to be settled, or deaf")
	}
	done := make(chan struct{})
	go e.Settle(done, func() { close(done) }, nil)
	if err := e.Await(t.Context()); err != nil || e.Deaf() {
		t.Errorf("%v, deaf %v; want an ear that hears", err, e.Deaf())
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if e.Listen(ctx) {
		t.Error("a connection that was closed is said to have ended by itself")
	}
	if !e.Deaf() {
		t.Error("an ear whose connection has ended is not deaf")
	}
	if !e.Listen(t.Context()) {
		t.Error("a connection that has ended is said to have been closed just now")
	}
}

// Whatever goes wrong before an ear hears, nothing was changed, so that a claim which wanted it is not in doubt.
func TestAnEarThatHearsNothingChangedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEar()
		cause := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if err := e.Await(ctx); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, cause) {
			t.Errorf("got %v, want ErrNotSent and why nobody waits any more", err)
		}
		e.Settle(nil, nil, errors.New("reset"))
		if err := e.Await(t.Context()); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("got %v, want ErrNotSent", err)
		}
		if !e.Deaf() || !e.Listen(t.Context()) {
			t.Error("an ear that failed is not deaf")
		}
		e.Close(t.Context())
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

// A subscription at another master than that of the key hears nothing of it: messages go to the channel at the key's own.
func TestAnEarHearsNothingAtAnotherMaster(t *testing.T) {
	for node, hears := range map[string]bool{"": true, "b": true, "a": false} {
		e, c := NewEar(), confirmed{done: make(chan struct{})}
		err := e.Subscribe(t.Context(), c, node, "k", "channel", nil)
		if (err == nil) != hears || !e.Settled() || e.Deaf() == hears {
			t.Errorf("wanted master %q, b confirms: %v, settled %v, deaf %v; want it to hear: %v", node, err, e.Settled(), e.Deaf(), hears)
		}
		if hears {
			e.Close(t.Context())
		}
		select {
		case <-c.done:
		default:
			t.Errorf("wanted master %q: the connection stays", node)
		}
	}
}

// The end of an ear does not wait for a server that does not answer any more.
func TestTheEndOfAnEarIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEar()
		ended := make(chan struct{})
		e.Settle(make(chan struct{}), func() {
			defer close(ended)
			time.Sleep(time.Minute)
		}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		e.Close(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("closed after %v, want after the second that the caller has", took)
		}
		<-ended
	})
}
