package interlockprom_test

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockprom"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // every lost lease is a line of the log

// scene is a client whose locks are measured, and another one of the same store.
type scene struct {
	*testing.T
	store         *memlock.Driver
	measured      *interlock.Client
	other         *interlock.Client
	registry      *prometheus.Registry
	metrics       *interlockprom.Collector
	measuredStore *memlock.Driver // the wire of the measured client
}

// play runs f in a bubble of its own time.
func play(t *testing.T, o *interlockprom.Options, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, store: memlock.New(), registry: prometheus.NewPedanticRegistry(), metrics: interlockprom.New(o)}
		s.registry.MustRegister(s.metrics)
		s.measuredStore = s.store.Share()
		s.measured = s.client(s.measuredStore, &interlock.Options{Tracer: s.metrics})
		s.other = s.client(s.store, nil)
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

func (s *scene) lock(c *interlock.Client, name string, o ...interlock.LockOption) *interlock.Lease {
	s.Helper()
	l, err := c.Mutex(name, o...).Lock(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// scrape is what Prometheus gets, read by its own parser.
func (s *scene) scrape() map[string]*dto.MetricFamily {
	s.Helper()
	synctest.Wait()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(s.Context(), "GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return families
}

// values returns the series of a family by the values of their labels but store, sorted by their names: of a histogram the count.
func values(t *testing.T, f *dto.MetricFamily) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			if l.GetName() == "store" {
				continue
			}
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		key := strings.Join(labels, " ")
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			all[key] = m.GetCounter().GetValue()
		case dto.MetricType_GAUGE:
			all[key] = m.GetGauge().GetValue()
		case dto.MetricType_HISTOGRAM:
			all[key] = float64(m.GetHistogram().GetSampleCount())
		default:
			t.Errorf("%s is a %v", f.GetName(), f.GetType())
		}
	}
	return all
}

// want compares the series of a family that are not 0.
func (s *scene) want(families map[string]*dto.MetricFamily, name string, want map[string]float64) {
	s.Helper()
	got := values(s.T, families[name])
	maps.DeleteFunc(got, func(_ string, v float64) bool { return v == 0 })
	if !maps.Equal(got, want) {
		s.Errorf("%s: %v, want %v", name, got, want)
	}
}

func TestCollector_MeasuresWaitsAndHolds(t *testing.T) {
	play(t, nil, func(s *scene) {
		l := s.lock(s.other, "m")
		time.AfterFunc(3*time.Second, func() { l.Release() })
		waiting := make(chan struct{})
		go func() {
			defer close(waiting)
			l := s.lock(s.measured, "m") // after 3 s
			passed := make(chan struct{})
			go func() {
				defer close(passed)
				s.lock(s.measured, "m").Release()
			}()
			time.Sleep(5 * time.Millisecond)
			l.Release()
			<-passed
		}()
		time.Sleep(time.Second)
		if _, err := s.measured.Mutex("m").TryLock(s.Context()); err == nil {
			s.Error("a lock that is held was granted")
		}
		during := s.scrape()
		s.want(during, interlock.MetricWaiters, map[string]float64{"": 1})
		s.want(during, interlock.MetricHolders, map[string]float64{})
		<-waiting
		permits, err := s.measured.Semaphore("s", 2).Acquire(s.Context(), 2)
		if err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Minute)
		after := s.scrape()
		permits.Release()

		s.want(after, interlock.MetricWaitSeconds, map[string]float64{
			"kind=mutex result=granted": 1, "kind=mutex result=passed": 1, "kind=mutex result=held": 1, "kind=permit result=granted": 1,
		})
		s.want(after, interlock.MetricHoldSeconds, map[string]float64{"kind=mutex": 2})
		s.want(after, interlock.MetricPassesTotal, map[string]float64{"": 1})
		s.want(after, interlock.MetricWaiters, map[string]float64{})
		s.want(after, interlock.MetricHolders, map[string]float64{"": 1})
		s.want(after, interlock.MetricLostTotal, map[string]float64{})
		for _, m := range after[interlock.MetricWaitSeconds].GetMetric() {
			if m.GetLabel()[1].GetValue() == "granted" && m.GetLabel()[0].GetValue() == "mutex" && m.GetHistogram().GetSampleSum() != 3 {
				s.Errorf("a wait of 3 s is measured as %v", m)
			}
		}
		slack := after[interlock.MetricRenewSlackSeconds].GetMetric()[0].GetHistogram()
		if n := slack.GetSampleCount(); n < 10 || slack.GetSampleSum() < 8*float64(n) {
			s.Errorf("a minute of renewals in time is measured as %v", slack)
		}
		if ok := values(s.T, after[interlock.MetricRenewalsTotal]); ok["result=ok"] < 10 || ok["result=late"]+ok["result=error"] != 0 {
			s.Errorf("renewals: %v", ok)
		}
	})
}

// A lease that is lost in each of the ways in which that happens here; that a stop is told from a silent store is the core's to test.
func TestCollector_CountsLossesByReason(t *testing.T) {
	for want, loses := range map[interlock.Reason]func(s *scene, l *interlock.Lease){
		interlock.LostExpired: func(s *scene, _ *interlock.Lease) {
			defer s.measuredStore.Stall()()
			time.Sleep(time.Minute)
		},
		interlock.LostSession: func(s *scene, _ *interlock.Lease) { s.measuredStore.EndSessions() },
		interlock.LostGone:    func(s *scene, _ *interlock.Lease) { s.store.Lose("m") },
		interlock.LostBroken: func(s *scene, l *interlock.Lease) {
			line, err := s.store.Line(s.Context(), "m")
			if err == nil {
				err = s.store.Break(s.Context(), "m", line.Claims[0].PublicID, l.Fence(), false)
			}
			if err != nil {
				s.Fatal(err)
			}
		},
		interlock.LostMaxHold: func(*scene, *interlock.Lease) { time.Sleep(time.Hour) },
		interlock.LostShutdown: func(s *scene, _ *interlock.Lease) {
			if err := s.measured.Close(); err != nil {
				s.Error(err)
			}
		},
		interlock.LostStalled: func(s *scene, _ *interlock.Lease) {
			s.metrics.HoldEnd(s.Context(), interlock.HoldEnd{Name: "m", Kind: driver.Mutex, Reason: interlock.LostStalled, Err: interlock.ErrLost})
		},
	} {
		play(t, nil, func(s *scene) {
			l := s.lock(s.measured, "m", interlock.MaxHold(time.Hour))
			loses(s, l)
			if want != interlock.LostStalled {
				<-l.Context().Done()
			}
			s.want(s.scrape(), interlock.MetricLostTotal, map[string]float64{"reason=" + string(want): 1})
			l.Release()
			if lost := s.scrape()[interlock.MetricLostTotal]; len(lost.GetMetric()) != 7 {
				s.Errorf("%s: %d reasons are there, want all 7 from the start", want, len(lost.GetMetric()))
			}
		})
	}
}

func TestCollector_CountsWhatTheStoreHasNotConfirmed(t *testing.T) {
	play(t, nil, func(s *scene) {
		l := s.lock(s.measured, "m")
		resume := s.measuredStore.Stall()
		l.Release()
		resume()
		s.want(s.scrape(), interlock.MetricUncertainTotal, map[string]float64{"": 1})
		s.want(s.scrape(), interlock.MetricLostTotal, map[string]float64{})
	})
}

// A name is a label where the program says so, and then there are few of them.
func TestCollector_NamesAreAllowedOneByOne(t *testing.T) {
	play(t, &interlockprom.Options{Store: "main", Name: interlockprom.Names("nightly", "coupons/*")}, func(s *scene) {
		for _, name := range []string{"nightly", "nightly/2", "coupons/1", "coupons/2", "users/1"} {
			s.lock(s.measured, name).Release()
		}
		s.want(s.scrape(), interlock.MetricHoldSeconds, map[string]float64{
			"kind=mutex name=nightly": 1, "kind=mutex name=coupons/*": 2, "kind=mutex name=other": 2,
		})
		for _, l := range s.scrape()[interlock.MetricWaiters].GetMetric()[0].GetLabel() {
			if l.GetName() == "store" && l.GetValue() != "main" {
				s.Errorf("store is %q", l.GetValue())
			}
		}
	})
	play(t, &interlockprom.Options{Name: func(lock string) string { return lock }}, func(s *scene) {
		held := map[string]*interlock.Lease{}
		for i := range 1000 {
			name := strings.Repeat("x", i+1)
			held[name] = s.lock(s.measured, name)
		}
		s.lock(s.measured, "x\u00e9").Release()
		names := values(s.T, s.scrape()[interlock.MetricHolders])
		if len(names) != 101 || names["name=other"] != 900 {
			s.Errorf("%d names, of which %v locks are among the others; want 100 and these", len(names), names["name=other"])
		}
		for _, l := range held {
			l.Release()
		}
		s.want(s.scrape(), interlock.MetricHolders, map[string]float64{})
	})
}

func TestCollector_SaysNothingThatPromlintWouldNot(t *testing.T) {
	play(t, &interlockprom.Options{Name: interlockprom.Names()}, func(s *scene) {
		s.lock(s.measured, "m").Release()
		problems, err := testutil.GatherAndLint(s.registry)
		if err != nil || len(problems) > 0 {
			s.Errorf("%v, %v", problems, err)
		}
	})
}

// Two stores of one program are two collectors; the same one twice is an error of the registry.
func TestCollector_OfTwoStores(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, store := range []string{"main", "jobs"} {
		if err := r.Register(interlockprom.New(&interlockprom.Options{Store: store})); err != nil {
			t.Errorf("%s: %v", store, err)
		}
	}
	if err := r.Register(interlockprom.New(&interlockprom.Options{Store: "main"})); err == nil {
		t.Error("two collectors of one store were registered")
	}
}

// What a scraper gets that asks for native histograms.
func TestCollector_HasNativeHistograms(t *testing.T) {
	play(t, nil, func(s *scene) {
		s.lock(s.measured, "m").Release()
		request := httptest.NewRequestWithContext(s.Context(), "GET", "/metrics", nil)
		request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, request)
		decoder := expfmt.NewDecoder(bytes.NewReader(answer.Body.Bytes()), expfmt.ResponseFormat(answer.Result().Header))
		for {
			var f dto.MetricFamily
			if err := decoder.Decode(&f); err != nil {
				s.Fatalf("no native histogram among the answer: %v", err)
			}
			if f.GetName() == interlock.MetricWaitSeconds {
				if h := f.GetMetric()[0].GetHistogram(); h.Schema == nil || len(h.GetBucket()) != 20 {
					s.Errorf("want native buckets beside 20 classic ones: %v", h)
				}
				return
			}
		}
	})
}

func TestCollector_KeepsExemplars(t *testing.T) {
	type key struct{}
	o := &interlockprom.Options{Exemplar: func(ctx context.Context) prometheus.Labels {
		if id, ok := ctx.Value(key{}).(string); ok {
			return prometheus.Labels{"trace_id": id}
		}
		return nil
	}}
	play(t, o, func(s *scene) {
		var waits []context.Context
		for _, id := range []string{"4bf92f", strings.Repeat("f", 129), "\xff"} { // the others are none for Prometheus
			waits = append(waits, context.WithValue(s.Context(), key{}, id))
		}
		for _, ctx := range append(waits, s.Context()) {
			l, err := s.measured.Mutex("m").Lock(ctx)
			if err != nil {
				s.Fatal(err)
			}
			l.Release()
		}
		families, err := s.registry.Gather()
		if err != nil {
			s.Fatal(err)
		}
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == interlock.MetricWaitSeconds })
		h := families[i].GetMetric()[0].GetHistogram()
		found := slices.ContainsFunc(h.GetBucket(), func(b *dto.Bucket) bool {
			return b.GetExemplar() != nil && b.GetExemplar().GetLabel()[0].GetValue() == "4bf92f"
		})
		if h.GetSampleCount() != 4 || !found {
			s.Errorf("want four waits, of which one has an exemplar: %v", h)
		}
	})
}
