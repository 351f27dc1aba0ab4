package deploytest

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockprom"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // every lost lease is a line of the log

// program is one that is scraped, beside another client of its store. Its time is that of a bubble.
type program struct {
	*testing.T
	store   *memlock.Driver
	wire    *slowly // the program's own way to the store
	client  *interlock.Client
	other   *interlock.Client
	metrics *interlockprom.Collector
}

// slowly is a driver whose renewals take a while.
type slowly struct {
	*memlock.Driver
	renew time.Duration
}

func (d *slowly) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := d.Driver.Open(ctx, spec)
	return slowSession{s, d}, err
}

type slowSession struct {
	driver.Session
	d *slowly
}

func (s slowSession) Renew(ctx context.Context) (driver.Renewal, error) {
	time.Sleep(s.d.renew)
	return s.Session.Renew(ctx)
}

func (s slowSession) Lost() <-chan driver.Loss { return s.Session.(driver.LossNotifier).Lost() }

func (p *program) lock(c *interlock.Client, name string, o ...interlock.LockOption) *interlock.Lease {
	p.Helper()
	l, err := c.Mutex(name, o...).Lock(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return l
}

// work locks and unlocks something each second, as a healthy program does.
func (p *program) work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		p.lock(p.client, "work").Release()
	}
}

// What happens to a program, and the alerts that belong to it.
var scenes = map[string]struct {
	play func(p *program)
	want []string
}{
	"nothing": {func(p *program) {
		l := p.lock(p.client, "m")
		p.work(time.Hour)
		l.Release()
	}, nil},
	"a deploy": {func(p *program) {
		p.lock(p.client, "m")
		p.work(time.Minute)
		_ = p.client.Close()
		time.Sleep(time.Minute)
	}, nil},
	"the store loses a claim": {func(p *program) {
		l := p.lock(p.client, "m")
		p.work(time.Minute)
		p.store.Lose("m")
		p.work(time.Minute)
		l.Release()
	}, []string{"InterlockLeaseLost"}},
	"the process stands still": { // whose clock is the core's to test
		func(p *program) {
			ctx := p.metrics.WaitStart(p.Context(), interlock.WaitStart{Op: "lock", Name: "m", Kind: driver.Mutex})
			p.metrics.WaitEnd(ctx, interlock.WaitEnd{Op: "lock", Name: "m", Kind: driver.Mutex, Result: interlock.Granted})
			p.work(time.Minute)
			p.metrics.HoldEnd(ctx, interlock.HoldEnd{Name: "m", Kind: driver.Mutex, Reason: interlock.LostStalled, Err: interlock.ErrLost})
			p.work(time.Minute)
		}, []string{"InterlockProcessStalled"},
	},
	"a job hangs": {func(p *program) {
		l := p.lock(p.client, "m", interlock.MaxHold(time.Minute))
		p.work(2 * time.Minute)
		l.Release()
	}, []string{"InterlockMaxHold"}},
	"an operator breaks a lock": {func(p *program) {
		l := p.lock(p.client, "m")
		p.work(time.Minute)
		line, err := p.store.Line(p.Context(), "m")
		if err == nil {
			err = p.store.Break(p.Context(), "m", line.Claims[0].PublicID, l.Fence(), false)
		}
		if err != nil {
			p.Fatal(err)
		}
		p.work(time.Minute)
		l.Release()
	}, []string{"InterlockLeaseBroken"}},
	"the store fails now and then": {func(p *program) {
		l := p.lock(p.client, "m")
		for range 12 {
			time.Sleep(12 * time.Second)
			p.wire.Fail(errors.New("out of order"))
			time.Sleep(3 * time.Second)
			p.wire.Fail(nil)
		}
		l.Release()
	}, []string{"InterlockRenewalsFail"}},
	"the store answers slowly": {func(p *program) {
		p.wire.renew = 4 * time.Second
		l := p.lock(p.client, "m")
		time.Sleep(20 * time.Minute)
		l.Release()
	}, []string{"InterlockRenewalsLate"}},
	"the store is away": {func(p *program) {
		p.work(time.Minute)
		resume := p.wire.Stall()
		for range 20 {
			if l, err := p.client.Mutex("m").TryLock(p.Context()); err == nil {
				l.Release()
			}
			time.Sleep(10 * time.Second)
		}
		resume()
	}, []string{"InterlockStoreUnavailable", "InterlockRenewalsFail"}},
	"holders are slow": {func(p *program) {
		for range 30 {
			l := p.lock(p.other, "m")
			time.AfterFunc(time.Minute, func() { l.Release() })
			p.lock(p.client, "m").Release()
		}
	}, []string{"InterlockWaitsLong"}},
	"a holder is stuck": {func(p *program) {
		l := p.lock(p.other, "m")
		waiting := make(chan struct{})
		go func() {
			defer close(waiting)
			p.lock(p.client, "m").Release()
		}()
		time.Sleep(time.Hour)
		l.Release()
		<-waiting
	}, []string{"InterlockNobodyGetsIn"}},
	"a release is not confirmed": {func(p *program) {
		l := p.lock(p.client, "m")
		p.work(time.Minute)
		resume := p.wire.Stall()
		l.Release()
		resume()
		p.work(time.Minute)
	}, []string{"InterlockReleasesUncertain"}},
}

const scrapeEach = 15 * time.Second

// played is what a Prometheus has of a scene, from begin to end.
func played(t *testing.T, play func(*program)) (d *database, begin, end time.Time) {
	t.Helper()
	d = &database{series: map[string]*kept{}}
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		p := &program{T: t, store: store, wire: &slowly{Driver: store.Share()}, metrics: interlockprom.New(nil)}
		registry := prometheus.NewRegistry()
		registry.MustRegister(p.metrics)
		var err error
		if p.client, err = interlock.New(p.wire, &interlock.Options{Tracer: p.metrics}); err != nil {
			t.Fatal(err)
		}
		defer p.client.Close()
		if p.other, err = interlock.New(store, nil); err != nil {
			t.Fatal(err)
		}
		defer p.other.Close()
		begin = time.Now()
		over := make(chan struct{})
		go func() {
			defer close(over)
			play(p)
		}()
		for going := true; going; {
			d.scrape(t, registry)
			select {
			case <-over:
				going = false
			case <-time.After(scrapeEach):
			}
		}
		time.Sleep(scrapeEach)
		d.scrape(t, registry)
		end = time.Now()
	})
	return d, begin, end
}

// alerts returns the rules about programs.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	return rulesOf(t, "../prometheus/interlock.rules.yml")
}

// rulesOf returns the rules of a file, as Prometheus reads them.
func rulesOf(t *testing.T, file string) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups.Groups[0].Rules
}

// alert looks at the rules each time that something was scraped, and says if others fired than these.
func (d *database) alert(t *testing.T, rules []rulefmt.Rule, begin, end time.Time, alerts []string) {
	t.Helper()
	fired := map[string]bool{}
	for _, rule := range rules {
		since := time.Time{} // since when it is pending
		for at := begin; !at.After(end); at = at.Add(scrapeEach) {
			switch values := d.query(t, rule.Expr, at); {
			case len(values) == 0:
				since = time.Time{}
			case since.IsZero():
				since = at
			}
			if !since.IsZero() && at.Sub(since) >= time.Duration(rule.For) {
				fired[rule.Alert] = true
			}
		}
	}
	want := map[string]bool{}
	for _, alert := range alerts {
		want[alert] = true
	}
	if !maps.Equal(fired, want) {
		t.Errorf("%v fired, want %v", slices.Sorted(maps.Keys(fired)), alerts)
	}
}

// Each alert fires when what it is about happens, and no other does.
func TestAlerts(t *testing.T) {
	all := alerts(t)
	tried := map[string]bool{}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			d, begin, end := played(t, scene.play)
			d.alert(t, all, begin, end, scene.want)
		})
		for _, alert := range scene.want {
			tried[alert] = true
		}
	}
	for _, rule := range all {
		if !tried[rule.Alert] {
			t.Errorf("no scene is about %s", rule.Alert)
		}
	}
}

// Each alert leads to its part of the page, and each part is about an alert.
func TestAlertsAreOnThePage(t *testing.T) {
	all := alerts(t)
	page, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	var headings, names []string
	for _, m := range regexp.MustCompile(`(?m)^### (Interlock\w+)$`).FindAllStringSubmatch(string(page), -1) {
		headings = append(headings, m[1])
	}
	for _, rule := range all {
		names = append(names, rule.Alert)
		if url := rule.Annotations["runbook_url"]; !strings.HasSuffix(url, "docs/observability.md#"+strings.ToLower(rule.Alert)) {
			t.Errorf("%s leads to %s", rule.Alert, url)
		}
	}
	if !slices.Equal(headings, names) {
		t.Errorf("the page is about %v, want %v", headings, names)
	}
}
