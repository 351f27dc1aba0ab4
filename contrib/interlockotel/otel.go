package interlockotel

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock"
)

// Options configures a Tracer. The zero value of each field means its default.
type Options struct {
	// Store is the attribute store, which tells the stores of a program apart. Default: "default".
	Store string

	// Name maps a lock's name to the attribute name of metrics. It is called for each event, must always return the same for the same
	// name, and may be called concurrently. Beyond 100 different values all others become "other". Default: there is no such attribute.
	Name func(lock string) string

	// MeterProvider makes the instruments. Default: the global one.
	MeterProvider metric.MeterProvider

	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider
}

// Scope is the instrumentation scope of what this package tells.
const Scope = "github.com/interlock-go/interlock/contrib/interlockotel"

// Tracer tells OpenTelemetry of the locks of one store, over one client or several. It is safe for concurrent use. It blocks where an
// exporter does: one that sends in the background, as batches, does not.
type Tracer struct {
	spans trace.Tracer
	store string

	instruments
	series series

	mu      sync.Mutex
	holders map[string]trace.SpanContext // the exclusive leases of this process, by name
}

var _ interlock.Tracer = (*Tracer)(nil)

// New returns a Tracer for Options.Tracer of clients. It fails when the provider refuses an instrument. A nil Options means the defaults.
func New(o *Options) (*Tracer, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	if opts.TracerProvider == nil {
		opts.TracerProvider = otel.GetTracerProvider()
	}
	t := &Tracer{
		spans: opts.TracerProvider.Tracer(Scope), store: cmp.Or(opts.Store, "default"), holders: map[string]trace.SpanContext{},
	}
	t.series.begin(t.store, opts.Name)
	return t, t.build(opts.MeterProvider.Meter(Scope))
}

// WaitStart implements interlock.Tracer.
func (t *Tracer) WaitStart(ctx context.Context, d interlock.WaitStart) context.Context {
	t.waiters.Add(ctx, 1, t.series.at(d.Name).all...)
	return t.startWait(ctx, d)
}

// WaitEnd implements interlock.Tracer.
func (t *Tracer) WaitEnd(ctx context.Context, d interlock.WaitEnd) {
	s := t.series.at(d.Name)
	t.waiters.Add(ctx, -1, s.all...)
	t.wait.Record(ctx, d.Waited.Seconds(), s.wait(d.Kind, d.Result)...)
	if d.Err == nil {
		t.holding.Add(ctx, 1, s.all...)
		if d.Passed {
			t.passes.Add(ctx, 1, s.all...)
		}
	}
	t.endWait(ctx, d)
}

// HoldEnd implements interlock.Tracer.
func (t *Tracer) HoldEnd(ctx context.Context, d interlock.HoldEnd) {
	s := t.series.at(d.Name)
	t.holding.Add(ctx, -1, s.all...)
	t.hold.Record(ctx, d.Held.Seconds(), s.hold(d.Kind)...)
	if d.Reason != "" {
		t.lost.Add(ctx, 1, s.loss(d.Reason)...)
	}
	if errors.Is(d.Err, interlock.ErrUncertain) {
		t.uncertain.Add(ctx, 1, s.all...)
	}
	t.endHold(ctx, d)
}

// Renewed implements interlock.Tracer.
func (t *Tracer) Renewed(ctx context.Context, d interlock.Renewed) {
	if d.Leases > 0 {
		t.slack.Record(ctx, max(d.Slack.Seconds(), 0), t.series.store)
	}
	result := 0
	switch {
	case d.Err != nil:
		result = 2
	case d.Late():
		result = 1
	}
	t.renewals.Add(ctx, 1, t.series.renewals[result])
}
