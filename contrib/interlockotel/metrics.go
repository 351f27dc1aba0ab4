package interlockotel

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// instruments are what is measured.
type instruments struct {
	wait, hold, slack                 metric.Float64Histogram
	renewals, lost, uncertain, passes metric.Int64Counter
	waiters, holding                  metric.Int64UpDownCounter
}

// The bounds of buckets, in seconds, where no view of the program says otherwise.
var (
	waitBounds = []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 300,
	}
	holdBounds  = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600}
	slackBounds = []float64{0, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 7.5, 10, 15, 30, 60, 300}
)

// build makes the instruments.
func (i *instruments) build(m metric.Meter) error {
	var errs []error
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
	i.wait = seconds("interlock.wait", "Time from asking for a lock until it was granted, or not.", waitBounds)
	i.hold = seconds("interlock.hold", "Time from the grant of a lease until its release or loss.", holdBounds)
	i.slack = seconds("interlock.renew.slack", "Trust that the lease nearest to its end had left when a renewal was answered or had failed.", slackBounds)
	i.renewals = counter("interlock.renewals", "{renewal}", "Renewals of sessions: ok, late (more than half of a lease's trust was over), error.")
	i.lost = counter("interlock.lost", "{lease}", "Leases that were lost before they were released.")
	i.uncertain = counter("interlock.uncertain", "{release}", "Releases that the store has not confirmed in time.")
	i.passes = counter("interlock.passes", "{lease}", "Leases that were passed on inside this process, without asking the store.")
	i.waiters = gauge("interlock.waiters", "{call}", "Calls of this process that wait for a lock.")
	i.holding = gauge("interlock.holders", "{lease}", "Leases that this process holds.")
	return errors.Join(errs...)
}

// The closed sets of values of attributes.
var (
	results = [...]interlock.Result{
		interlock.Granted, interlock.Passed, interlock.Held, interlock.TimedOut, interlock.Cancelled, interlock.Unavailable, interlock.Failed,
	}
	reasons = [...]interlock.Reason{
		interlock.LostExpired, interlock.LostStalled, interlock.LostSession, interlock.LostGone, interlock.LostBroken, interlock.LostMaxHold,
		interlock.LostShutdown,
	}
)

// other is the value of the attribute name beyond the first mostNames.
const (
	other     = "other"
	mostNames = 100
)

// kinds is how many there are, with one for what is none.
const kinds = int(driver.Permit) + 1

// series has the attributes of everything that is measured, made once: an event makes no set of them.
type series struct {
	name     func(string) string
	of       string
	store    metric.MeasurementOption
	renewals [3]metric.MeasurementOption // ok, late, error

	// By the values of the attribute name; without it the only ones are at "". The map is never changed but replaced.
	named atomic.Pointer[map[string]*attributes]
	mu    sync.Mutex // for replacing it
}

// attributes are those of one value of the attribute name, as the options that an instrument takes.
type attributes struct {
	all   []metric.AddOption // of counters and gauges
	waits [kinds][len(results)][]metric.RecordOption
	holds [kinds][]metric.RecordOption
	lost  [len(reasons)][]metric.AddOption
}

func (s *series) begin(store string, name func(string) string) {
	s.name, s.of = name, store
	s.store = s.set()
	for i, result := range []string{"ok", "late", "error"} {
		s.renewals[i] = s.set(attribute.String("result", result))
	}
	s.named.Store(&map[string]*attributes{})
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
	if a := (*s.named.Load())[value]; a != nil {
		return a
	}
	return s.first(value)
}

// first makes the attributes for a value that was not seen before, or returns those of other when there are too many.
func (s *series) first(value string) *attributes {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := *s.named.Load()
	others := len(all)
	if all[other] != nil {
		others--
	}
	if others >= mostNames && value != other {
		value = other
	}
	if a := all[value]; a != nil {
		return a
	}
	var name []attribute.KeyValue
	if s.name != nil {
		name = append(name, attribute.String("name", strings.ToValidUTF8(value, "\uFFFD")))
	}
	set := func(more ...attribute.KeyValue) metric.MeasurementOption { return s.set(append(more, name...)...) }
	a := &attributes{all: []metric.AddOption{set()}}
	for k := range kinds {
		kind := attribute.String("kind", driver.Kind(k).String())
		a.holds[k] = []metric.RecordOption{set(kind)}
		for i, r := range results {
			a.waits[k][i] = []metric.RecordOption{set(kind, attribute.String("result", string(r)))}
		}
	}
	for i, r := range reasons {
		a.lost[i] = []metric.AddOption{set(attribute.String("reason", string(r)))}
	}
	all = maps.Clone(all)
	all[value] = a
	s.named.Store(&all)
	return a
}

func (a *attributes) wait(k driver.Kind, r interlock.Result) []metric.RecordOption {
	i := slices.Index(results[:], r)
	if i < 0 {
		i = len(results) - 1
	}
	return a.waits[index(k)][i]
}

func (a *attributes) hold(k driver.Kind) []metric.RecordOption { return a.holds[index(k)] }

func (a *attributes) loss(r interlock.Reason) []metric.AddOption {
	return a.lost[max(slices.Index(reasons[:], r), 0)]
}

func index(k driver.Kind) int {
	if int(k) >= kinds {
		return 0
	}
	return int(k)
}
