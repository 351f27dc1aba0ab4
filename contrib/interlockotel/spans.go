package interlockotel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// locking is the context of one Lock and of its lease. The span in it is that of the wait, and from the grant on that of the hold: the
// lease's context has its values, so what is done with the lease is a child of the hold, and not of a wait that is over.
//
//	caller's span ─┬─ interlock.wait ── what the store's client does
//	               └─ interlock.hold ── what is done with the lease
type locking struct {
	context.Context                 //nolint:containedctx // it is one, with other values
	outer           context.Context //nolint:containedctx // the caller's, which has both spans as children
	wait            trace.Span
	values          atomic.Pointer[context.Context] // those of the hold, once there is one

	mu      sync.Mutex
	hold    trace.Span // nil before the grant
	granted time.Time
	over    *interlock.HoldEnd // told before the grant was
}

type lockingKey struct{}

// Value implements context.Context.
func (l *locking) Value(key any) any {
	if key == (lockingKey{}) {
		return l
	}
	if v := l.values.Load(); v != nil {
		return (*v).Value(key)
	}
	return l.Context.Value(key)
}

func (t *Tracer) startWait(ctx context.Context, d interlock.WaitStart) context.Context {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.about(d.Name, d.Kind)...)}
	t.mu.Lock()
	holder, known := t.holders[d.Name]
	t.mu.Unlock()
	if known {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: holder}))
	}
	inner, span := t.spans.Start(ctx, "interlock.wait", options...)
	return &locking{Context: inner, outer: ctx, wait: span}
}

func (t *Tracer) about(name string, k driver.Kind) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(interlock.AttributeName, name), attribute.String(interlock.AttributeKind, k.String()),
		attribute.String(interlock.AttributeStore, t.store),
	}
}

func (t *Tracer) endWait(ctx context.Context, d interlock.WaitEnd) {
	l, ok := ctx.Value(lockingKey{}).(*locking)
	if !ok {
		return
	}
	l.wait.SetAttributes(attribute.String(interlock.AttributeResult, string(d.Result)))
	var held *interlock.HeldError
	if errors.As(d.Err, &held) && held.Holder != nil {
		l.wait.SetAttributes(attribute.String(interlock.AttributeOwner, held.Holder.Owner.Name))
	}
	if d.Result == interlock.Unavailable || d.Result == interlock.Failed {
		failed(l.wait, string(d.Result), d.Err)
	}
	l.wait.End()
	if d.Err == nil {
		t.startHold(l, d) //nolint:contextcheck // its parent is the caller's span, and not that of the wait in ctx
	}
}

func (t *Tracer) startHold(l *locking, d interlock.WaitEnd) {
	about := t.about(d.Name, d.Kind)
	if d.Fence != 0 {
		about = append(about, attribute.Int64(interlock.AttributeFence, int64(d.Fence)))
	}
	options := []trace.SpanStartOption{trace.WithAttributes(about...)}
	if wait := l.wait.SpanContext(); wait.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: wait}))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted = time.Now()
	values, span := t.spans.Start(l.outer, "interlock.hold", append(options, trace.WithTimestamp(l.granted))...)
	l.hold = span
	if l.over != nil { // it was lost at once
		t.over(l, *l.over)
		return
	}
	l.values.Store(&values)
	if of := span.SpanContext(); d.Kind.Exclusive() && of.IsValid() {
		t.mu.Lock()
		t.holders[d.Name] = of
		t.mu.Unlock()
	}
}

func (t *Tracer) endHold(ctx context.Context, d interlock.HoldEnd) {
	l, ok := ctx.Value(lockingKey{}).(*locking)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == nil {
		l.over = &d
		return
	}
	t.mu.Lock()
	if t.holders[d.Name].Equal(l.hold.SpanContext()) { // else the next holds already, to whom it was passed on
		delete(t.holders, d.Name)
	}
	t.mu.Unlock()
	t.over(l, d)
}

// over ends the span of a hold: when the lease ended, which of a loss is told later.
func (t *Tracer) over(l *locking, d interlock.HoldEnd) {
	switch {
	case d.Reason != "":
		l.hold.SetAttributes(attribute.String(interlock.AttributeReason, string(d.Reason)))
		failed(l.hold, string(d.Reason), d.Err)
	case errors.Is(d.Err, interlock.ErrUncertain):
		failed(l.hold, "uncertain", d.Err)
	}
	l.hold.End(trace.WithTimestamp(l.granted.Add(d.Held)))
}

// failed says that what a span is about has failed, by a word of a closed set and by the error.
func failed(s trace.Span, word string, err error) {
	s.SetAttributes(attribute.String("error.type", word))
	s.SetStatus(codes.Error, err.Error())
}
