package sessions

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Flight serializes the calls for one claim: a Release never overtakes an Acquire, also if its
// caller has given up waiting for the answer. The zero value is ready; the mutex that its methods
// are given guards it.
type Flight struct {
	under  bool
	landed chan struct{} // closed when the call under way is over; nil while nobody waits for that
}

// Underway is the error of a call that has returned before its request was answered.
type Underway struct {
	Cause error // why it has returned
	Over  <-chan struct{}
}

// Error returns the text of the cause.
func (u *Underway) Error() string { return u.Cause.Error() }

// Unwrap returns the cause.
func (u *Underway) Unwrap() error { return u.Cause }

// Landing returns a channel that is closed when the call under way is over, or nil if there is
// none. The mutex is held.
func (f *Flight) Landing() <-chan struct{} {
	if !f.under {
		return nil
	}
	if f.landed == nil {
		f.landed = make(chan struct{})
	}
	return f.landed
}

// Fly makes a call when the one before is over, and bounds it by the timeout. If here is true the
// client can abandon a request and keep the order, and the call is made in the caller's goroutine;
// otherwise it is made [Aside].
func (f *Flight) Fly(ctx context.Context, mu sync.Locker, here bool, timeout time.Duration, call func(ctx context.Context) error) error {
	for landing := f.begin(mu); landing != nil; landing = f.begin(mu) {
		select {
		case <-landing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var err error
	if here {
		err = call(Within(ctx, timeout))
	} else {
		err = Aside(ctx, timeout, call)
	}
	if u := underway(err); u != nil {
		go func() {
			<-u.Over
			f.land(mu)
		}()
		return err
	}
	f.land(mu)
	return err
}

// begin begins a call, unless one is under way: then it returns that one's Landing.
func (f *Flight) begin(mu sync.Locker) <-chan struct{} {
	mu.Lock()
	defer mu.Unlock()
	landing := f.Landing()
	f.under = true
	return landing
}

// Aside makes a call in a goroutine of its own, bounded by the timeout. When ctx ends Aside
// returns, and the call goes on.
func Aside(ctx context.Context, timeout time.Duration, call func(ctx context.Context) error) error {
	done, over := make(chan error, 1), make(chan struct{})
	go func() { //nolint:contextcheck // the call outlives its caller
		defer close(over)
		err := call(Within(context.Background(), timeout))
		done <- err
		if u := underway(err); u != nil {
			<-u.Over
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &Underway{Cause: ctx.Err(), Over: over}
	}
}

// underway returns err as an [Underway], or nil.
func underway(err error) *Underway {
	if err == nil {
		return nil
	}
	var u *Underway
	errors.As(err, &u)
	return u
}

func (f *Flight) land(mu sync.Locker) {
	mu.Lock()
	defer mu.Unlock()
	f.under = false
	if f.landed != nil {
		close(f.landed)
		f.landed = nil
	}
}

// Rest waits until no call is under way, or ctx ends.
func (f *Flight) Rest(ctx context.Context, mu sync.Locker) {
	for {
		mu.Lock()
		landing := f.Landing()
		mu.Unlock()
		if landing == nil {
			return
		}
		select {
		case <-landing:
		case <-ctx.Done():
			return
		}
	}
}
