package deploytest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockotel"
	"github.com/interlock-go/interlock/contrib/interlockprom"
	"github.com/interlock-go/interlock/driver"
)

// Prometheus gets the same from both modules: names, types, labels and buckets.
func TestBothModulesHaveTheSameNames(t *testing.T) {
	name := func(string) string { return "x" }
	direct := interlockprom.New(&interlockprom.Options{Store: "main", Name: name})
	registry, exported := prometheus.NewRegistry(), prometheus.NewRegistry()
	registry.MustRegister(direct)
	exporter, err := otelprom.New(otelprom.WithRegisterer(exported), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	through, err := interlockotel.New(&interlockotel.Options{Store: "main", Name: name, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))})
	if err != nil {
		t.Fatal(err)
	}
	tracer := interlock.Tracers(direct, through)
	for _, reason := range []interlock.Reason{"", interlock.LostGone} {
		ctx := tracer.WaitStart(t.Context(), interlock.WaitStart{Op: "lock", Name: "m", Kind: driver.Mutex})
		tracer.WaitEnd(ctx, interlock.WaitEnd{Op: "lock", Name: "m", Kind: driver.Mutex, Passed: true, Result: interlock.Passed})
		end := interlock.HoldEnd{Name: "m", Kind: driver.Mutex, Reason: reason, Err: interlock.ErrUncertain}
		if reason != "" {
			end.Err = interlock.ErrLost
		}
		tracer.HoldEnd(ctx, end)
	}
	tracer.Renewed(t.Context(), interlock.Renewed{Claims: 1, Leases: 1, Slack: 1, Trust: 1})
	got, want := shapes(t, exported), shapes(t, registry)
	delete(want, "interlock_build_info") // is of the client's own
	if !maps.Equal(got, want) {
		t.Errorf("through OpenTelemetry:\n%v, want\n%v", got, want)
	}
}

// shapes returns type, labels and buckets of each family.
func shapes(t *testing.T, from prometheus.Gatherer) map[string]string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range families {
		m := f.GetMetric()[0]
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		shape := f.GetType().String() + " " + strings.Join(labels, ",")
		if f.GetType() == dto.MetricType_HISTOGRAM {
			bounds := []string{}
			for _, b := range m.GetHistogram().GetBucket() {
				bounds = append(bounds, strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
			}
			shape += " " + strings.Join(bounds, ",")
		}
		all[f.GetName()] = shape
	}
	return all
}
