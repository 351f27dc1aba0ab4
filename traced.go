package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// tracedWait is a wait of which the tracer is told.
type tracedWait struct {
	tracer  Tracer
	clock   *clock.Clock
	what    WaitStart
	started clock.Instant
}

// trace tells the tracer that a wait starts, and returns the tracer's context.
func (h *handle) trace(ctx context.Context, op string, k driver.Kind) (context.Context, tracedWait) {
	t := h.client.opts.Tracer
	w := tracedWait{t, h.client.clock, WaitStart{op, h.name, k}, h.client.clock.Now()}
	return waitStarts(ctx, t, w.what), w
}

// end tells it how the wait ended. ctx is the tracer's.
func (w *tracedWait) end(ctx context.Context, l *Lease, err error) {
	d := WaitEnd{Op: w.what.Op, Name: w.what.Name, Kind: w.what.Kind, Err: err}
	if l == nil {
		d.Waited, d.Result = w.clock.Since(w.started), resultOf(ctx, err)
	} else {
		d.Waited, d.Result = l.since.Sub(w.started), Granted // no need to ask the clock once more
		d.Fence, d.Passed = l.Fence(), l.holds[0].Passed
		if d.Passed {
			d.Result = Passed
		}
		told := false
		defer func() {
			if !told { // it panics, and whoever recovers from that was given no lease to release
				_ = l.Release()
			}
		}()
		w.tracer.WaitEnd(ctx, d)
		told = true
		return
	}
	w.tracer.WaitEnd(ctx, d)
}

// resultOf is how a wait failed. That of a caller who has left says nothing of a store that had
// little time to answer; and a store that failed may have said so with an error of a context that
// was not the caller's.
func resultOf(ctx context.Context, err error) Result {
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return Cancelled
	case errors.Is(err, ErrUnavailable):
		return Unavailable
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, ErrHeld):
		return Held
	}
	return Failed
}
