package memlock

import (
	"context"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// wire stands between a driver's sessions and the store, so that tests can cut it. Its zero value passes everything.
type wire struct {
	mu       sync.Mutex
	requests chan struct{} // closed when held requests may go on; nil while nothing is held
	replies  chan struct{} // likewise
	failure  error
	calls    int
}

// send passes a request on, or holds or fails it before it reached the store.
func (w *wire) send(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memlock: %w: %w", driver.ErrNotSent, err)
	}
	w.mu.Lock()
	w.calls++
	failure, held := w.failure, w.requests
	w.mu.Unlock()
	if failure != nil {
		return failure
	}
	return pass(ctx, held)
}

// receive passes a reply on, or holds it: the store has done what it was asked.
func (w *wire) receive(ctx context.Context) error {
	w.mu.Lock()
	held := w.replies
	w.mu.Unlock()
	return pass(ctx, held)
}

func pass(ctx context.Context, held chan struct{}) error {
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("memlock: no answer: %w", ctx.Err())
	}
}

// hold holds what passes the given channels until resume is called.
func (w *wire) hold(held ...*chan struct{}) (resume func()) {
	released := make(chan struct{})
	w.mu.Lock()
	for _, h := range held {
		*h = released
	}
	w.mu.Unlock()
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, h := range held {
			if *h == released {
				*h = nil
			}
		}
		close(released)
	})
}

// call does op at the store as one atomic step, with a request before and a reply behind it.
func call[T any](ctx context.Context, s *session, op func() (T, error)) (T, error) {
	var none T
	if err := s.driver.wire.send(ctx); err != nil {
		return none, err
	}
	answer, err := func() (T, error) {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		if s.over {
			return none, driver.ErrSessionLost
		}
		return op()
	}()
	if werr := s.driver.wire.receive(ctx); werr != nil {
		return none, werr
	}
	return answer, err
}
