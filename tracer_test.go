package interlock_test

import (
	"context"
	"slices"
	"sync"

	"github.com/interlock-go/interlock"
)

// traces keeps what a client tells its tracer.
type traces struct {
	mu      sync.Mutex
	started []interlock.WaitStart
	ended   []interlock.WaitEnd
	held    []interlock.HoldEnd
	renewed []interlock.Renewed
	during  func() // called by Renewed
}

type traceKey struct{}

func (r *traces) WaitStart(ctx context.Context, d interlock.WaitStart) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, d)
	return context.WithValue(ctx, traceKey{}, len(r.started))
}

func (r *traces) WaitEnd(_ context.Context, d interlock.WaitEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, d)
}

func (r *traces) HoldEnd(_ context.Context, d interlock.HoldEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = append(r.held, d)
}

func (r *traces) Renewed(_ context.Context, d interlock.Renewed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed = append(r.renewed, d)
	if r.during != nil {
		r.during()
	}
}

func (r *traces) holds() []interlock.HoldEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held)
}
