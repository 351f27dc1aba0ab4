package interlockprom

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// The closed sets of values of labels.
var (
	results = [...]interlock.Result{
		interlock.Granted, interlock.Passed, interlock.Held, interlock.TimedOut, interlock.Cancelled, interlock.Unavailable, interlock.Failed,
	}
	reasons = [...]interlock.Reason{
		interlock.LostExpired, interlock.LostStalled, interlock.LostSession, interlock.LostGone, interlock.LostBroken, interlock.LostMaxHold,
		interlock.LostShutdown,
	}
)

// kinds is how many there are, with one for what is none.
const kinds = int(driver.Permit) + 1

// series are those of one value of the label name, so that an event looks for none by its labels. Counters and gauges are made with it: a
// counter that begins with its first loss shows no increase by that. Histograms are made when first observed, for they are many lines each.
type series struct {
	collector         *Collector
	names             []string // the value, or nothing where there is no such label
	waiters, holders  prometheus.Gauge
	passes, uncertain prometheus.Counter
	lost              [len(reasons)]prometheus.Counter
	waits             [kinds][len(results)]atomic.Pointer[prometheus.Observer]
	holds             [kinds]atomic.Pointer[prometheus.Observer]
}

// at returns the series for locks of this name.
func (c *Collector) at(lock string) *series {
	if c.only != nil {
		return c.only
	}
	value := c.name(lock)
	if s := (*c.series.Load())[value]; s != nil {
		return s
	}
	return c.first(value)
}

// first makes the series of a value that was not seen before, or returns those of Other when there are too many.
func (c *Collector) first(value string) *series {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := *c.series.Load()
	others := len(all)
	if all[Other] != nil {
		others--
	}
	if others >= mostNames && value != Other {
		value = Other
	}
	if s := all[value]; s != nil {
		return s
	}
	s := &series{collector: c}
	if c.name != nil {
		s.names = []string{strings.ToValidUTF8(value, "\uFFFD")}
	}
	s.waiters, s.holders = c.waiters.WithLabelValues(s.names...), c.holders.WithLabelValues(s.names...)
	s.passes, s.uncertain = c.passes.WithLabelValues(s.names...), c.uncertain.WithLabelValues(s.names...)
	for i, r := range reasons {
		s.lost[i] = c.lost.WithLabelValues(s.with(string(r))...)
	}
	all = maps.Clone(all)
	all[value] = s
	c.series.Store(&all)
	return s
}

// with returns the values of labels, that of name last.
func (s *series) with(values ...string) []string { return append(values, s.names...) }

// wait returns where the seconds of a wait are observed.
func (s *series) wait(k driver.Kind, r interlock.Result) prometheus.Observer {
	i := slices.Index(results[:], r)
	if i < 0 {
		i = len(results) - 1
	}
	at := &s.waits[index(k)][i]
	if o := at.Load(); o != nil {
		return *o
	}
	o := s.collector.wait.WithLabelValues(s.with(k.String(), string(results[i]))...)
	at.Store(&o)
	return o
}

// hold returns where the seconds of a hold are observed.
func (s *series) hold(k driver.Kind) prometheus.Observer {
	at := &s.holds[index(k)]
	if o := at.Load(); o != nil {
		return *o
	}
	o := s.collector.hold.WithLabelValues(s.with(k.String())...)
	at.Store(&o)
	return o
}

// loss returns the counter of losses for this reason.
func (s *series) loss(r interlock.Reason) prometheus.Counter {
	return s.lost[max(slices.Index(reasons[:], r), 0)]
}

func index(k driver.Kind) int {
	if int(k) >= kinds {
		return 0
	}
	return int(k)
}
