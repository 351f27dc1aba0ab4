package interlock

import "context"

// Tracers returns a Tracer that tells each of these, in their order: metrics from one and spans
// from another. A context goes from one to the next, so each finds at the end what it put into it
// at the start.
func Tracers(all ...Tracer) Tracer { return tracers(all) }

type tracers []Tracer

// WaitStart implements Tracer.
func (ts tracers) WaitStart(ctx context.Context, d WaitStart) context.Context {
	for _, t := range ts {
		ctx = waitStarts(ctx, t, d)
	}
	return ctx
}

// WaitEnd implements Tracer.
func (ts tracers) WaitEnd(ctx context.Context, d WaitEnd) {
	for _, t := range ts {
		t.WaitEnd(ctx, d)
	}
}

// HoldEnd implements Tracer.
func (ts tracers) HoldEnd(ctx context.Context, d HoldEnd) {
	for _, t := range ts {
		t.HoldEnd(ctx, d)
	}
}

// Renewed implements Tracer.
func (ts tracers) Renewed(ctx context.Context, d Renewed) {
	for _, t := range ts {
		t.Renewed(ctx, d)
	}
}
