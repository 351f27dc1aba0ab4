package deploytest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

// Every query of the dashboard runs, and shows something of a program to which everything happens.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../grafana/interlock.json")
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
	variables := strings.NewReplacer("$__rate_interval", "2m", "$__range", "1h", "$job", ".*", "$store", ".*", "${datasource}", "")
	shown := func(what, expr string) {
		if len(d.query(t, variables.Replace(expr), end)) == 0 {
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
}
