package deploytest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/interlock-go/interlock/internal/serve"
)

// What interlock serve answers at /metrics is read by Prometheus' own parser, and its linter has nothing to say about the names.
func TestMetricsOfServe(t *testing.T) {
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
	text := get("metrics")
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
