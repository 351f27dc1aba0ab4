package deploytest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// database is what a Prometheus keeps that scrapes one program.
type database struct {
	job    string           // whose target that is; "app" unless it is said
	series map[string]*kept // by their labels, as text
}

type kept struct {
	labels  labels.Labels
	samples []chunks.Sample
}

type point struct {
	at    int64
	value float64
}

func (p point) T() int64                      { return p.at }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }
func (p point) ST() int64                     { return 0 }

// scrape takes in what is measured now, with classic buckets, as a target of the job.
func (d *database) scrape(t *testing.T, from prometheus.Gatherer) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			add := func(suffix string, value float64, more ...string) {
				l := labels.FromStrings(append(more, "__name__", f.GetName()+suffix, "job", cmp.Or(d.job, "app"), "instance", "app:8080")...)
				b := labels.NewBuilder(l)
				for _, p := range m.GetLabel() {
					b.Set(p.GetName(), p.GetValue())
				}
				l = b.Labels()
				key := l.String()
				if d.series[key] == nil {
					d.series[key] = &kept{labels: l}
				}
				d.series[key].samples = append(d.series[key].samples, point{now, value})
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				add("", m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				add("", m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				for _, b := range h.GetBucket() {
					add("_bucket", float64(b.GetCumulativeCount()), "le", strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
				}
				add("_bucket", float64(h.GetSampleCount()), "le", "+Inf")
				add("_sum", h.GetSampleSum())
				add("_count", float64(h.GetSampleCount()))
			default:
				t.Fatalf("%s is a %v", f.GetName(), f.GetType())
			}
		}
	}
}

// Querier implements storage.Queryable.
func (d *database) Querier(int64, int64) (storage.Querier, error) { return querier{d}, nil }

type querier struct{ d *database }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, key := range slices.Sorted(maps.Keys(q.d.series)) {
		s := q.d.series[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	return &set{Series: found, at: -1}
}

func (q querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q querier) Close() error { return nil }

type set struct {
	Series []storage.Series
	at     int
}

func (s *set) Next() bool {
	s.at++
	return s.at < len(s.Series)
}
func (s *set) At() storage.Series                { return s.Series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

var engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true})

// query returns the values of an expression now; what is no number is none.
func (d *database) query(t *testing.T, expr string, at time.Time) []float64 {
	t.Helper()
	q, err := engine.NewInstantQuery(t.Context(), d, nil, expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var values []float64
	for _, s := range vector {
		if !math.IsNaN(s.F) {
			values = append(values, s.F)
		}
	}
	return values
}
