package deploytest

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/interlock-go/interlock"
)

// shows fails unless every query of a dashboard shows something, and returns all of them.
func (d *database) shows(t *testing.T, file string, at time.Time) (queries string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "2m", "$__range", "1h", "$job", ".*", "$store", ".*", "${datasource}", "")
	shown := func(what, expr string) {
		queries += expr + "\n"
		if len(d.query(t, variables.Replace(expr), at)) == 0 {
			t.Errorf("%s shows nothing: %s", what, expr)
		}
	}
	if len(dashboard.Panels) < 10 {
		t.Errorf("%d panels were found, want all", len(dashboard.Panels))
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			shown(p.Title, target.Expr)
		}
	}
	for _, a := range dashboard.Annotations.List {
		shown("the annotation "+a.Name, a.Expr)
	}
	return queries
}

// Every query of the dashboard runs, and shows something of a program to which everything happens.
func TestDashboard(t *testing.T) {
	d, _, end := played(t, func(p *program) {
		p.work(time.Minute)
		l, lost := p.lock(p.client, "m"), p.lock(p.client, "n", interlock.MaxHold(time.Hour))
		waiting := make(chan struct{})
		go func() {
			defer close(waiting)
			p.lock(p.client, "m").Release()
		}()
		time.Sleep(time.Millisecond)
		l.Release() // passes it on
		<-waiting
		p.work(30 * time.Second)
		p.store.Lose("n")
		p.work(20 * time.Second)
		lost.Release()
	})
	d.shows(t, "../grafana/interlock.json", end)
}

// Every query of the dashboard of interlock serve runs, and shows something of a server that is busy; and everything that it measures is there.
func TestDashboardOfServe(t *testing.T) {
	text := scrapeOfServe(t)
	synctest.Test(t, func(t *testing.T) {
		d := &database{series: map[string]*kept{}}
		families := map[string]*dto.MetricFamily{}
		for i := range 9 {
			d.scrape(t, prometheus.GathererFunc(func() (_ []*dto.MetricFamily, err error) {
				parser := expfmt.NewTextParser(model.LegacyValidation)
				families, err = parser.TextToMetricFamilies(strings.NewReader(text))
				for _, f := range families {
					busier(f, uint64(i+1))
				}
				return slices.Collect(maps.Values(families)), err
			}))
			time.Sleep(scrapeEach)
		}
		queries := d.shows(t, "../grafana/interlock-serve.json", time.Now())
		for name := range families {
			if !strings.Contains(queries, name) {
				t.Errorf("the dashboard shows nothing of %s", name)
			}
		}
	})
}

// busier makes what counts of a family so many times as much, and at least so many.
func busier(f *dto.MetricFamily, times uint64) {
	for _, m := range f.Metric {
		if c := m.Counter; c != nil {
			more := float64(times) * max(c.GetValue(), 1)
			c.Value = &more
		}
		if h := m.Histogram; h != nil {
			count := times * h.GetSampleCount()
			h.SampleCount = &count
			for _, b := range h.Bucket {
				in := times * b.GetCumulativeCount()
				b.CumulativeCount = &in
			}
		}
	}
}
