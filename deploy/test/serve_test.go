package deploytest

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/interlock-go/interlock/internal/serve"
)

// scrapeOfServe returns what interlock serve answers at /metrics, of two stores.
func scrapeOfServe(t *testing.T) string {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- serve.Run(ctx, &serve.Options{
			Stores: [][2]string{{"main", "mem:"}, {"other", "mem:"}}, Listen: "127.0.0.1:0", Connections: 100, Streams: 10,
			Logger: slog.New(slog.DiscardHandler), Ready: func(u string) { ready <- u },
		})
	}()
	var at string
	select {
	case at = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	defer func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	get := func(path string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, path := range []string{"", "nothing", "readyz"} {
		get(path)
	}
	return get("metrics")
}

// What interlock serve answers at /metrics is read by Prometheus' own parser, and its linter has nothing to say about the names.
func TestMetricsOfServe(t *testing.T) {
	text := scrapeOfServe(t)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, name := range []string{
		"interlock_build_info", "interlock_store_up", "interlock_store_latency_seconds", "interlock_snapshot_age_seconds", "interlock_lines", "interlock_claims",
		"interlock_oldest_wait_seconds", "interlock_breaks_total", "interlock_http_requests_total", "interlock_http_request_duration_seconds",
		"interlock_http_streams", "interlock_http_connections", "interlock_http_dropped_total",
	} {
		f := families[name]
		if f == nil || len(f.Metric) == 0 {
			t.Errorf("no %s in\n%s", name, text)
			continue
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if !slices.Contains([]string{"store", "state", "mode", "route", "code", "what", "version", "goversion"}, l.GetName()) {
					t.Errorf("%s has the label %s", name, l.GetName())
				}
			}
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// What happens to the stores of a server, as their numbers in what it answers at a time, and the alerts that belong to it.
var scenesOfServe = map[string]struct {
	numbers func(after time.Duration) map[string]float64
	want    []string
}{
	"nothing": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_oldest_wait_seconds{store="main"}`: 30, `interlock_snapshot_age_seconds{store="main"}`: 10}
	}, nil},
	"a store is restarted": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_store_up{store="other"}`: oneIf(after < 5*time.Minute || after > 6*time.Minute)}
	}, nil},
	"a store is away": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_store_up{store="other"}`: 0, `interlock_snapshot_age_seconds{store="other"}`: after.Seconds()}
	}, []string{"InterlockStoreDown"}},
	"a list is not read": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_snapshot_age_seconds{store="main"}`: after.Seconds()}
	}, []string{"InterlockListOld"}},
	"somebody waits": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_oldest_wait_seconds{store="main"}`: after.Seconds()}
	}, []string{"InterlockOldestWait"}},
	"somebody breaks": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_breaks_total{store="main",mode="now"}`: oneIf(after > 5*time.Minute)}
	}, []string{"InterlockBrokenHere"}},
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Each alert about the stores of a server fires when what it is about happens, and no other does; and each has its part of the page.
func TestAlertsOfServe(t *testing.T) {
	text := scrapeOfServe(t)
	all := rulesOf(t, "../prometheus/interlock-serve.rules.yml")
	tried := map[string]bool{}
	for name, scene := range scenesOfServe {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &database{series: map[string]*kept{}}
				begin := time.Now()
				for time.Since(begin) < 20*time.Minute {
					now := text
					for series, value := range scene.numbers(time.Since(begin)) {
						at := strings.Index(now, "\n"+series+" ") + 1
						if at == 0 {
							t.Fatalf("no %s in\n%s", series, now)
						}
						end := at + strings.IndexByte(now[at:], '\n')
						now = now[:at] + series + " " + strconv.FormatFloat(value, 'g', -1, 64) + now[end:]
					}
					d.scrape(t, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
						parser := expfmt.NewTextParser(model.LegacyValidation)
						families, err := parser.TextToMetricFamilies(strings.NewReader(now))
						return slices.Collect(maps.Values(families)), err
					}))
					time.Sleep(scrapeEach)
				}
				d.alert(t, all, begin, time.Now(), scene.want)
			})
		})
		for _, alert := range scene.want {
			tried[alert] = true
		}
	}
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range all {
		if !tried[rule.Alert] {
			t.Errorf("no scene is about %s", rule.Alert)
		}
		if url := rule.Annotations["runbook_url"]; !strings.HasSuffix(url, "docs/serve.md#"+strings.ToLower(rule.Alert)) || !strings.Contains(string(page), "\n### "+rule.Alert+"\n") {
			t.Errorf("%s leads to %s", rule.Alert, url)
		}
	}
}
