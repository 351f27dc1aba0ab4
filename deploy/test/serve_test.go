package deploytest

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
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

// runs has interlock serve show two stores until the test ends, and returns where.
func runs(t *testing.T, o serve.Options) (at string) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	o.Stores, o.Listen, o.Connections, o.Streams = [][2]string{{"main", "mem:"}, {"other", "mem:"}}, "127.0.0.1:0", 100, 10
	o.Logger, o.Ready = slog.New(slog.DiscardHandler), func(u string) { ready <- u }
	go func() { ended <- serve.Run(ctx, &o) }()
	select {
	case at = <-ready:
	case err := <-ended:
		end()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return at
}

// scrapeOfServe returns what interlock serve answers at /metrics, of two stores.
func scrapeOfServe(t *testing.T) string {
	t.Helper()
	at := runs(t, serve.Options{})
	get := func(path string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil)
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
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range families {
		labels := map[string]bool{}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				labels[l.GetName()] = true
			}
		}
		row := regexp.MustCompile("(?m)^\\|[^|]*`" + name + "`[^|]*\\|([^|]*)\\|").FindSubmatch(page)
		if row == nil {
			t.Errorf("docs/serve.md has no row of %s", name)
			continue
		}
		said := map[string]bool{}
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllSubmatch(row[1], -1) {
			said[string(m[1])] = true
		}
		if !maps.Equal(labels, said) {
			t.Errorf("docs/serve.md says of %s that it has the labels %v, and it has %v", name, said, labels)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| .*`(interlock_[a-z_]+)`").FindAllSubmatch(page, -1) {
		if families[string(m[1])] == nil {
			t.Errorf("docs/serve.md has a row of %s, which is not there", m[1])
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
	"the server is away": {func(after time.Duration) map[string]float64 {
		return map[string]float64{"up": 0}
	}, []string{"InterlockServeDown"}},
	"a scrape is missed": {func(after time.Duration) map[string]float64 {
		return map[string]float64{"up": oneIf(after < 5*time.Minute || after > 7*time.Minute)}
	}, nil},
	"the server fails": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_http_requests_total{route="/line",code="500"}`: 1 + oneIf(after > 5*time.Minute)}
	}, []string{"InterlockServeFails"}},
	"a store does not answer a request": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_http_requests_total{route="/line",code="503"}`: 1 + oneIf(after > 5*time.Minute)}
	}, nil},
	"somebody tries tokens": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_http_dropped_total{what="credential"}`: after.Seconds()}
	}, []string{"InterlockServeTurnsAway"}},
	"somebody has an old token": {func(after time.Duration) map[string]float64 {
		return map[string]float64{`interlock_http_dropped_total{what="credential"}`: 5 * oneIf(after > 5*time.Minute)}
	}, nil},
}

// sample puts a value in the place of that which a series has in a page of metrics, or adds the series to its family there.
func sample(t *testing.T, page, series string, value float64) string {
	t.Helper()
	line := series + " " + strconv.FormatFloat(value, 'g', -1, 64)
	if at := strings.Index(page, "\n"+series+" ") + 1; at > 0 {
		end := at + strings.IndexByte(page[at:], '\n')
		return page[:at] + line + page[end:]
	}
	family, _, _ := strings.Cut(series, "{")
	head := regexp.MustCompile(`(?m)^# TYPE ` + family + ` \w+\n`).FindStringIndex(page)
	if head == nil {
		t.Fatalf("no %s in\n%s", family, page)
	}
	return page[:head[1]] + line + "\n" + page[head[1]:]
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
				d := &database{job: "interlock-serve", series: map[string]*kept{}}
				begin := time.Now()
				for time.Since(begin) < 20*time.Minute {
					now := text + "# TYPE up gauge\nup 1\n" // as Prometheus has it of each scrape
					for series, value := range scene.numbers(time.Since(begin)) {
						now = sample(t, now, series, value)
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
