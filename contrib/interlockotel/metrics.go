package interlockotel

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/metrics"
)

// instruments are what is measured.
type instruments struct {
	wait, hold, slack                 metric.Float64Histogram
	renewals, lost, uncertain, passes metric.Int64Counter
	waiters, holding                  metric.Int64UpDownCounter
}

// build makes the instruments.
func (i *instruments) build(m metric.Meter) error {
	var errs []error
	// A view of the program may say other bounds.
	seconds := func(name, about string, bounds []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, about string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
		errs = append(errs, err)
		return c
	}
	gauge := func(name, unit, about string) metric.Int64UpDownCounter {
		g, err := m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
		errs = append(errs, err)
		return g
	}
	i.wait = seconds("interlock.wait", "Time from asking for a lock until it was granted, or not.", metrics.Waits)
	i.hold = seconds("interlock.hold", "Time from the grant of a lease until its release or loss.", metrics.Holds)
	i.slack = seconds("interlock.renew.slack", "Trust that the lease nearest to its end had left when a renewal was answered or had failed.", metrics.Slacks)
	i.renewals = counter("interlock.renewals", "{renewal}", "Renewals of sessions: ok, late (more than half of a lease's trust was over), error.")
	i.lost = counter("interlock.lost", "{lease}", "Leases that were lost before they were released.")
	i.uncertain = counter("interlock.uncertain", "{release}", "Releases that the store has not confirmed in time.")
	i.passes = counter("interlock.passes", "{lease}", "Leases that were passed on inside this process, without asking the store.")
	i.waiters = gauge("interlock.waiters", "{call}", "Calls of this process that wait for a lock.")
	i.holding = gauge("interlock.holders", "{lease}", "Leases that this process holds.")
	return errors.Join(errs...)
}

// series has the attributes of everything that is measured, made once: an event makes no set of them.
type series struct {
	name     func(string) string
	of       string
	store    metric.MeasurementOption
	renewals [3]metric.MeasurementOption // ok, late, error

	named *metrics.Series[attributes] // by the values of the attribute name; without it the only ones are at ""
}

// attributes are those of one value of the attribute name, as the options that an instrument takes.
type attributes struct {
	all   []metric.AddOption // of counters and gauges
	waits [metrics.Kinds][len(metrics.Results)][]metric.RecordOption
	holds [metrics.Kinds][]metric.RecordOption
	lost  [len(metrics.Reasons)][]metric.AddOption
}

func (s *series) begin(store string, name func(string) string) {
	s.name, s.of = name, store
	s.store = s.set()
	for i, result := range []string{"ok", "late", "error"} {
		s.renewals[i] = s.set(attribute.String("result", result))
	}
	s.named = metrics.NewSeries(s.first)
}

// set returns these attributes, and that of the store.
func (s *series) set(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("store", s.of))...))
}

// at returns the attributes for locks of this name.
func (s *series) at(lock string) *attributes {
	value := ""
	if s.name != nil {
		value = s.name(lock)
	}
	return s.named.At(value)
}

// first makes the attributes for a value that was not seen before.
func (s *series) first(value string) *attributes {
	var name []attribute.KeyValue
	if s.name != nil {
		name = append(name, attribute.String("name", value))
	}
	set := func(more ...attribute.KeyValue) metric.MeasurementOption { return s.set(append(more, name...)...) }
	a := &attributes{all: []metric.AddOption{set()}}
	for k := range metrics.Kinds {
		kind := attribute.String("kind", driver.Kind(k).String())
		a.holds[k] = []metric.RecordOption{set(kind)}
		for i, r := range metrics.Results {
			a.waits[k][i] = []metric.RecordOption{set(kind, attribute.String("result", string(r)))}
		}
	}
	for i, r := range metrics.Reasons {
		a.lost[i] = []metric.AddOption{set(attribute.String("reason", string(r)))}
	}
	return a
}

func (a *attributes) wait(k driver.Kind, r interlock.Result) []metric.RecordOption {
	return a.waits[metrics.OfKind(k)][metrics.OfResult(r)]
}

func (a *attributes) hold(k driver.Kind) []metric.RecordOption { return a.holds[metrics.OfKind(k)] }

func (a *attributes) loss(r interlock.Reason) []metric.AddOption { return a.lost[metrics.OfReason(r)] }
