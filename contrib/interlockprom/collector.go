package interlockprom

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/metrics"
)

// Options configures a Collector. The zero value of each field means its default.
type Options struct {
	// Store is the value of the label store, which tells the stores of a program apart. Default: "default".
	Store string

	// Name maps a lock's name to the value of the label name: see [Names]. It is called for each event, must always return the same
	// for the same name, and may be called concurrently. Beyond 100 different values all others become "other". Default: there is no
	// such label. All collectors of a registry want it, or none.
	Name func(lock string) string

	// Exemplar returns what is kept as the exemplar of a wait, such as the trace id of a context that is sampled, or nil. What is none
	// for Prometheus, as labels of more than 128 characters together, is left out. Default: none.
	Exemplar func(context.Context) prometheus.Labels
}

// Other is the value of the label name for all locks that have none of their own: "other".
const Other = metrics.Other

// Names returns a function for [Options.Name] that lets through the names in the list. What ends in * stands for all names that begin so,
// and is itself their value: the first that fits. All other names have the value [Other].
func Names(list ...string) func(lock string) string {
	exact := map[string]bool{}
	var prefixes []string
	for _, n := range list {
		if strings.HasSuffix(n, "*") {
			prefixes = append(prefixes, n)
		} else {
			exact[n] = true
		}
	}
	return func(lock string) string {
		if exact[lock] {
			return lock
		}
		for _, p := range prefixes {
			if strings.HasPrefix(lock, p[:len(p)-1]) {
				return p
			}
		}
		return Other
	}
}

// Collector measures the locks of one store, over one client or several. It is safe for concurrent use, never blocks, and
// asks for no memory per event beyond what client_golang does.
type Collector struct {
	name     func(string) string
	exemplar func(context.Context) prometheus.Labels

	wait, hold                     *prometheus.HistogramVec
	lost, passes, uncertain        *prometheus.CounterVec
	waiters, holders               *prometheus.GaugeVec
	slack                          prometheus.Histogram
	renewed, renewedLate, renewErr prometheus.Counter
	all                            []prometheus.Collector

	// The series that there are: without the label name the only ones, else by its values.
	only   *series
	series *metrics.Series[series]
}

var (
	_ prometheus.Collector = (*Collector)(nil)
	_ interlock.Tracer     = (*Collector)(nil)
)

// New returns a Collector, which is to be registered and to be the Options.Tracer of clients. A nil Options means the defaults.
func New(o *Options) *Collector {
	var opts Options
	if o != nil {
		opts = *o
	}
	store := prometheus.Labels{"store": cmp.Or(opts.Store, "default")}
	labels := func(l ...string) []string {
		if opts.Name != nil {
			l = append(l, "name")
		}
		return l
	}
	seconds := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Name: name, Help: help, ConstLabels: store, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
		}
	}
	counter := func(name, help string, l ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: store}, l)
	}
	gauge := func(name, help string, l ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: store}, l)
	}
	renewals := counter(interlock.MetricRenewalsTotal, "Renewals of sessions: ok, late (more than half of a lease's trust was over), error.", "result")
	c := &Collector{
		name: opts.Name, exemplar: opts.Exemplar,
		wait: prometheus.NewHistogramVec(seconds(interlock.MetricWaitSeconds,
			"Time from asking for a lock until it was granted, or not.", metrics.Waits), labels("kind", "result")),
		hold: prometheus.NewHistogramVec(seconds(interlock.MetricHoldSeconds,
			"Time from the grant of a lease until its release or loss.", metrics.Holds), labels("kind")),
		slack: prometheus.NewHistogram(seconds(interlock.MetricRenewSlackSeconds,
			"Trust that the lease nearest to its end had left when a renewal was answered or had failed.", metrics.Slacks)),
		lost:      counter(interlock.MetricLostTotal, "Leases that were lost before they were released.", labels("reason")...),
		passes:    counter(interlock.MetricPassesTotal, "Leases that were passed on inside this process, without asking the store.", labels()...),
		uncertain: counter(interlock.MetricUncertainTotal, "Releases that the store has not confirmed in time.", labels()...),
		waiters:   gauge(interlock.MetricWaiters, "Calls of this process that wait for a lock.", labels()...),
		holders:   gauge(interlock.MetricHolders, "Leases that this process holds.", labels()...),
		renewed:   renewals.WithLabelValues("ok"), renewedLate: renewals.WithLabelValues("late"), renewErr: renewals.WithLabelValues("error"),
	}
	version, goversion := versions()
	info := gauge("interlock_build_info", "The version of Interlock in this program, and that of Go.", "version", "goversion")
	info.WithLabelValues(version, goversion).Set(1)
	c.all = []prometheus.Collector{c.wait, c.hold, c.slack, renewals, c.lost, c.uncertain, c.passes, c.waiters, c.holders, info}
	c.series = metrics.NewSeries(c.begin)
	if c.name == nil {
		c.only = c.series.At("") // so that its counters are there, at 0, before anything happens
	}
	return c
}

// versions returns that of Interlock, as the program was built with, and that of Go.
func versions() (string, string) {
	const module = "github.com/interlock-go/interlock"
	version := "unknown"
	if b, ok := debug.ReadBuildInfo(); ok {
		if i := slices.IndexFunc(b.Deps, func(m *debug.Module) bool { return m.Path == module }); i >= 0 {
			version = cmp.Or(b.Deps[i].Version, version)
		}
	}
	return version, runtime.Version()
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.all {
		m.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.all {
		m.Collect(to)
	}
}
