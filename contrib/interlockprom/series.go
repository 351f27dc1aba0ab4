package interlockprom

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/metrics"
)

// series are those of one value of the label name, so that an event looks for none by its labels. Counters and gauges are made with it: a
// counter that begins with its first loss shows no increase by that. Histograms are made when first observed, for they are many lines each.
type series struct {
	collector         *Collector
	names             []string // the value, or nothing where there is no such label
	waiters, holders  prometheus.Gauge
	passes, uncertain prometheus.Counter
	lost              [len(metrics.Reasons)]prometheus.Counter
	waits             [metrics.Kinds][len(metrics.Results)]atomic.Pointer[prometheus.Observer]
	holds             [metrics.Kinds]atomic.Pointer[prometheus.Observer]
}

// at returns the series for locks of this name.
func (c *Collector) at(lock string) *series {
	if c.only != nil {
		return c.only
	}
	return c.series.At(c.name(lock))
}

// begin makes the series of a value that was not seen before.
func (c *Collector) begin(name string) *series {
	s := &series{collector: c}
	if c.name != nil {
		s.names = []string{name}
	}
	s.waiters, s.holders = c.waiters.WithLabelValues(s.names...), c.holders.WithLabelValues(s.names...)
	s.passes, s.uncertain = c.passes.WithLabelValues(s.names...), c.uncertain.WithLabelValues(s.names...)
	for i, r := range metrics.Reasons {
		s.lost[i] = c.lost.WithLabelValues(s.with(string(r))...)
	}
	return s
}

// with returns the values of labels, that of name last.
func (s *series) with(values ...string) []string { return append(values, s.names...) }

// wait returns where the seconds of a wait are observed.
func (s *series) wait(k driver.Kind, r interlock.Result) prometheus.Observer {
	i := metrics.OfResult(r)
	at := &s.waits[metrics.OfKind(k)][i]
	if o := at.Load(); o != nil {
		return *o
	}
	o := s.collector.wait.WithLabelValues(s.with(k.String(), string(metrics.Results[i]))...)
	at.Store(&o)
	return o
}

// hold returns where the seconds of a hold are observed.
func (s *series) hold(k driver.Kind) prometheus.Observer {
	at := &s.holds[metrics.OfKind(k)]
	if o := at.Load(); o != nil {
		return *o
	}
	o := s.collector.hold.WithLabelValues(s.with(k.String())...)
	at.Store(&o)
	return o
}

// loss returns the counter of losses for this reason.
func (s *series) loss(r interlock.Reason) prometheus.Counter { return s.lost[metrics.OfReason(r)] }
