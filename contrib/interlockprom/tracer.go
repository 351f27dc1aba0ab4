package interlockprom

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlock-go/interlock"
)

// WaitStart implements interlock.Tracer.
func (c *Collector) WaitStart(ctx context.Context, d interlock.WaitStart) context.Context {
	c.at(d.Name).waiters.Inc()
	return ctx
}

// WaitEnd implements interlock.Tracer.
func (c *Collector) WaitEnd(ctx context.Context, d interlock.WaitEnd) {
	s := c.at(d.Name)
	s.waiters.Dec()
	c.observe(ctx, s.wait(d.Kind, d.Result), d.Waited.Seconds())
	if d.Err != nil {
		return
	}
	s.holders.Inc()
	if d.Passed {
		s.passes.Inc()
	}
}

// observe is Observe, with an exemplar if there is one.
func (c *Collector) observe(ctx context.Context, o prometheus.Observer, seconds float64) {
	if c.exemplar != nil {
		if e := c.exemplar(ctx); e != nil {
			observeWith(o.(prometheus.ExemplarObserver), seconds, e)
			return
		}
	}
	o.Observe(seconds)
}

// observeWith observes once, with the exemplar if it is one: client_golang panics at what is none, when it has counted the observation.
func observeWith(o prometheus.ExemplarObserver, seconds float64, e prometheus.Labels) {
	defer func() { _ = recover() }()
	o.ObserveWithExemplar(seconds, e)
}

// HoldEnd implements interlock.Tracer.
func (c *Collector) HoldEnd(_ context.Context, d interlock.HoldEnd) {
	s := c.at(d.Name)
	s.holders.Dec()
	s.hold(d.Kind).Observe(d.Held.Seconds())
	if d.Reason != "" {
		s.loss(d.Reason).Inc()
	}
	if d.Err != nil && errors.Is(d.Err, interlock.ErrUncertain) {
		s.uncertain.Inc()
	}
}

// Renewed implements interlock.Tracer.
func (c *Collector) Renewed(_ context.Context, d interlock.Renewed) {
	if d.Leases > 0 {
		c.slack.Observe(max(d.Slack.Seconds(), 0)) // less would make the sum fall, which reads as a restart
	}
	switch {
	case d.Err != nil:
		c.renewErr.Inc()
	case d.Late():
		c.renewedLate.Inc()
	default:
		c.renewed.Inc()
	}
}
