package interlockprom_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockprom"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// Goroutines want one lock while others scrape: every wait is counted once, and at the end nobody waits or holds.
func TestCollector_InACrowd(t *testing.T) {
	const goroutines, each = 16, 50
	metrics, registry := interlockprom.New(&interlockprom.Options{Name: interlockprom.Names("m")}), prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	c, err := interlock.New(memlock.New(), &interlock.Options{Tracer: metrics})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var locking, scraping sync.WaitGroup
	over := make(chan struct{})
	scraping.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if _, err := registry.Gather(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range goroutines {
		locking.Go(func() {
			for range each {
				if err := c.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	locking.Wait()
	close(over)
	scraping.Wait()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums, passed := map[string]float64{}, 0.0
	for _, f := range families {
		for labels, v := range values(t, f) {
			sums[f.GetName()] += v
			if f.GetName() == interlock.MetricWaitSeconds && strings.HasSuffix(labels, "result=passed") {
				passed += v
			}
		}
	}
	if n := sums[interlock.MetricWaitSeconds]; n != goroutines*each {
		t.Errorf("%v waits are counted, want %d", n, goroutines*each)
	}
	if n := sums[interlock.MetricHoldSeconds]; n != goroutines*each {
		t.Errorf("%v holds are counted, want %d", n, goroutines*each)
	}
	if sums[interlock.MetricPassesTotal] != passed {
		t.Errorf("%v passes are counted, and %v waits that ended with one", sums[interlock.MetricPassesTotal], passed)
	}
	if sums[interlock.MetricWaiters] != 0 || sums[interlock.MetricHolders] != 0 {
		t.Errorf("at the end %v wait and %v hold", sums[interlock.MetricWaiters], sums[interlock.MetricHolders])
	}
}

// An event asks for no more memory than its observations in client_golang do.
func TestCollector_AsksForNoMemory(t *testing.T) {
	waited, held := 1234*time.Microsecond, 3*time.Second
	bare := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "bare", Help: "None.", NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	})
	least := testing.AllocsPerRun(1000, func() {
		bare.Observe(waited.Seconds())
		bare.Observe(held.Seconds())
	})
	for what, o := range map[string]*interlockprom.Options{"no names": nil, "names": {Name: interlockprom.Names("m")}} {
		c := interlockprom.New(o)
		got := testing.AllocsPerRun(1000, func() {
			ctx := c.WaitStart(t.Context(), interlock.WaitStart{Op: "lock", Name: "m", Kind: driver.Mutex})
			c.WaitEnd(ctx, interlock.WaitEnd{Op: "lock", Name: "m", Kind: driver.Mutex, Waited: waited, Result: interlock.Granted})
			c.HoldEnd(ctx, interlock.HoldEnd{Name: "m", Kind: driver.Mutex, Held: held, Reason: interlock.LostGone, Err: interlock.ErrLost})
		})
		if got > least {
			t.Errorf("%s: %v allocations, want the %v of two observations", what, got, least)
		}
	}
}

// What a tracer costs who takes and gives back a lock that nobody else wants: compare within one run.
func BenchmarkFreePair(b *testing.B) {
	for name, tracer := range map[string]interlock.Tracer{"untraced": nil, "traced": interlockprom.New(nil)} {
		b.Run(name, func(b *testing.B) {
			c, err := interlock.New(memlock.New(), &interlock.Options{Tracer: tracer})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			m := c.Mutex("m")
			b.ReportAllocs()
			for b.Loop() {
				l, err := m.Lock(b.Context())
				if err == nil {
					err = l.Release()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
