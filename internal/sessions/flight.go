package sessions

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Flight has the calls for one claim follow each other: a Release never overtakes an Acquire, whoever gave up waiting for
// its answer. The zero value is ready; the claim's mutex, which every method is given, guards it.
type Flight struct {
	under  bool
	landed chan struct{} // closed when the call under way is over; nil where nobody waits for that
}

// Underway is the error of a call whose caller is back while its request is not.
type Underway struct {
	Cause error // why the caller is back
	Over  <-chan struct{}
}

// Error says why the caller is back.
func (u *Underway) Error() string { return u.Cause.Error() }

// Unwrap returns why the caller is back.
func (u *Underway) Unwrap() error { return u.Cause }

// Landing returns what is closed when the call under way is over, or nil if there is none. The mutex is held.
func (f *Flight) Landing() <-chan struct{} {
	if !f.under {
		return nil
	}
	if f.landed == nil {
		f.landed = make(chan struct{})
	}
	return f.landed
}

// Fly makes a call with so much time, when the one before is over. Where here is true the client abandons a command with
// its order kept, and the call is made right here; elsewhere it is made [Aside].
func (f *Flight) Fly(ctx context.Context, mu sync.Locker, here bool, timeout time.Duration, call func(ctx context.Context) error) error {
	mu.Lock()
	for f.under {
		landing := f.Landing()
		mu.Unlock()
		select {
		case <-landing:
		case <-ctx.Done():
			return ctx.Err()
		}
		mu.Lock()
	}
	f.under = true
	mu.Unlock()
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

// Aside makes a call with so much time apart from its caller: when ctx ends the caller goes, and the call goes on until its answer or
// its timeout.
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

// underway is what an error says of a request whose caller is back, or nil.
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
