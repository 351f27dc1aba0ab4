package interlockotel_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockotel"
	"github.com/interlock-go/interlock/memlock"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // every lost lease is a line of the log

// scene is a client that tells OpenTelemetry, whose SDK keeps it in memory, and another client of the same store.
type scene struct {
	*testing.T
	store, wire   *memlock.Driver // the wire of the traced client is its own
	traced, other *interlock.Client
	tracer        *interlockotel.Tracer
	spans         trace.Tracer // of the program
	exporter      *tracetest.InMemoryExporter
	reader        *sdkmetric.ManualReader
}

// play runs f in a bubble of its own time.
func play(t *testing.T, o interlockotel.Options, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, store: memlock.New(), exporter: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
		spans := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.exporter))
		o.TracerProvider, s.spans = spans, spans.Tracer("program")
		o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
		var err error
		if s.tracer, err = interlockotel.New(&o); err != nil {
			t.Fatal(err)
		}
		s.wire = s.store.Share()
		s.traced, s.other = s.client(s.wire, &interlock.Options{Tracer: s.tracer, Owner: "traced"}), s.client(s.store, &interlock.Options{Owner: "other"})
		f(s)
	})
}

func (s *scene) client(d *memlock.Driver, o *interlock.Options) *interlock.Client {
	s.Helper()
	c, err := interlock.New(d, o)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return c
}

func (s *scene) lock(ctx context.Context, c *interlock.Client, name string, o ...interlock.LockOption) *interlock.Lease {
	s.Helper()
	l, err := c.Mutex(name, o...).Lock(ctx)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// ended returns the spans of this name that have ended, in that order.
func (s *scene) ended(name string) (spans tracetest.SpanStubs) {
	s.Helper()
	synctest.Wait()
	for _, span := range s.exporter.GetSpans() {
		if span.Name == name {
			spans = append(spans, span)
		}
	}
	return spans
}

// attributeOf returns the value of an attribute of a span, as text, or nothing.
func attributeOf(span tracetest.SpanStub, key attribute.Key) string {
	i := slices.IndexFunc(span.Attributes, func(a attribute.KeyValue) bool { return a.Key == key })
	if i < 0 {
		return ""
	}
	return span.Attributes[i].Value.String()
}

// linksTo reports whether a span has one link, and to this one.
func linksTo(span, other tracetest.SpanStub) bool {
	return len(span.Links) == 1 && span.Links[0].SpanContext.SpanID() == other.SpanContext.SpanID()
}

// read returns what is measured.
func (s *scene) read() map[string]map[string]float64 {
	s.Helper()
	synctest.Wait()
	return readAll(s.T, s.reader)
}

// readAll returns what is not 0, by instrument with its unit and by attributes but store: of a histogram the count.
func readAll(t *testing.T, reader *sdkmetric.ManualReader) map[string]map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	read := map[string]map[string]float64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		values := map[string]float64{}
		read[m.Name+" "+m.Unit] = values
		add := func(set attribute.Set, v float64) {
			if store, _ := set.Value("store"); store.AsString() != "main" {
				t.Errorf("%s has the store %q", m.Name, store.AsString())
			}
			set, _ = set.Filter(func(a attribute.KeyValue) bool { return a.Key != "store" })
			if v != 0 {
				values[set.Encoded(attribute.DefaultEncoder())] = v
			}
		}
		switch d := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				add(p.Attributes, float64(p.Count))
			}
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				add(p.Attributes, float64(p.Value))
			}
		default:
			t.Errorf("%s is a %T", m.Name, d)
		}
	}
	return read
}
