package serve

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is measured has labels of closed sets, and no lock's name; the list of names is not read for
// each scrape.
func TestMetrics(t *testing.T) {
	t.Parallel()
	one, at := newTried(t)
	lease := one.hold(t, "coupons/very-secret-customer")
	s := serves(t, &Options{Stores: [][2]string{{"one", at}}})
	for _, path := range []string{"/nothing-at-all", "/v1/line?name=very-secret-customer", "/line?name=very-secret-customer", "/static/very-secret-customer"} {
		s.ask("GET", path, "")
	}
	lists := func() (n int) {
		one.set(func() { n = one.lists })
		return n
	}
	a := s.ask("GET", "/metrics", "")
	before := lists()
	for range 20 {
		a = s.ask("GET", "/metrics", "")
	}
	if n := lists() - before; n > 5 { // on a machine so slow that 20 scrapes take a minute
		t.Errorf("20 scrapes have read %d lists of all names", n)
	}
	if got := a.header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("type %q", got)
	}
	for _, want := range []string{
		`interlock_store_up{store="one"} 1`, `interlock_lines{store="one"} 1`, `interlock_claims{store="one",state="holds"} 1`, `interlock_claims{store="one",state="waits"} 0`,
		`interlock_oldest_wait_seconds{store="one"} 0`, `interlock_breaks_total{store="one",mode="now"} 0`, `interlock_http_requests_total{route="other",code="404"} 1`, `interlock_http_requests_total{route="/static/",code="404"} 1`,
		`interlock_http_request_duration_seconds_bucket{route="/metrics",le="+Inf"} 20`, "# TYPE interlock_store_latency_seconds histogram", `interlock_snapshot_age_seconds{store="one"} `,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s in\n%s", want, a.body)
		}
	}
	if strings.Contains(a.body, "very-secret") {
		t.Errorf("a lock's name is in\n%s", a.body)
	}
	wellFormed(t, a.body)
	if b := s.ask("HEAD", "/metrics", ""); b.status != 200 || b.body != "" {
		t.Errorf("HEAD: %d %q", b.status, b.body)
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

var sample = regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="[^"\\\n]*"(?:,[a-z]+="[^"\\\n]*")*\})? (NaN|[0-9.e+-]+)$`)

// wellFormed holds a page of metrics to the text format: each family once, with its help and type
// before its samples, and no series twice.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	families, series, family := map[string]bool{}, map[string]bool{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if words := strings.Fields(line); strings.HasPrefix(line, "# HELP ") {
			family = words[2]
			if families[family] {
				t.Errorf("family %s twice", family)
			}
			families[family] = true
			continue
		} else if strings.HasPrefix(line, "# TYPE ") {
			if words[2] != family || !slices.Contains([]string{"gauge", "counter", "histogram"}, words[3]) {
				t.Errorf("type %s below %s", line, family)
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no sample: %s", line)
			continue
		}
		name := m[1]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if cut, ok := strings.CutSuffix(m[1], suffix); ok && cut == family {
				name = cut
			}
		}
		if name != family || series[m[1]+m[2]] {
			t.Errorf("%s stands below %s, or twice", line, family)
		}
		series[m[1]+m[2]] = true
	}
}
