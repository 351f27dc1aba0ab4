package browsertest

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// played is the name of which a stage plays acts.
const played = "migrations/orders"

// stage is a store as a busy team has it, in which waits are minutes old: it is played, over a
// driver whose traits and keys it has.
type stage struct {
	driver.Driver

	began time.Time
	next  chan struct{} // the next act begins

	mu  sync.Mutex
	act int
}

// Key implements driver.Keyer.
func (s *stage) Key(name string) string { return s.Driver.(driver.Keyer).Key(name) }

// Break implements driver.Inspector.
func (s *stage) Break(context.Context, string, string, uint64, bool) error { return driver.ErrRefused }

// Lines implements driver.Inspector.
func (s *stage) Lines(context.Context, string) ([]driver.Line, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines(), nil
}

// Line implements driver.Inspector.
func (s *stage) Line(_ context.Context, name string) (driver.Line, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines() {
		if l.Name == name {
			return l, nil
		}
	}
	return driver.Line{Name: name}, nil
}

// Watch implements driver.Watcher.
func (s *stage) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return func(yield func(driver.Line, error) bool) {
		for {
			if l, err := s.Line(ctx, name); !yield(l, err) {
				return
			}
			select {
			case <-s.next:
				s.mu.Lock()
				s.act++
				s.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}
}

// who are those who use the store.
var who = map[string]driver.Owner{
	"billing-1":   {Host: "web-3", User: "app", PID: 2114, Program: "billing"},
	"billing-2":   {Host: "web-7", User: "app", PID: 988, Program: "billing"},
	"scheduler-1": {Host: "jobs-1", User: "app", PID: 317, Program: "scheduler"},
	"scheduler-2": {Host: "jobs-2", User: "app", PID: 402, Program: "scheduler"},
	"deploy-4":    {Host: "ci-4", User: "deploy", PID: 51213, Program: "migrate"},
	"deploy-7":    {Host: "ci-7", User: "deploy", PID: 7761, Program: "migrate"},
	"deploy-9":    {Host: "ci-9", User: "deploy", PID: 14020, Program: "migrate"},
	"ana":         {Host: "laptop", User: "ana", PID: 6620, Program: "interlock"},
	"indexer":     {Host: "jobs-2", User: "app", PID: 2987, Program: "indexer"},
	"reports-1":   {Host: "jobs-1", User: "app", PID: 1203, Program: "reports"},
	"reports-2":   {Host: "jobs-2", User: "app", PID: 1288, Program: "reports"},
}

// holds is a claim that holds since some time, of which some is left.
func (s *stage) holds(owner string, fence uint64, since, left time.Duration, passes int, note string) driver.Holder {
	h := s.waits(owner, since)
	h.Held, h.Fence, h.Passes, h.Note, h.Until = true, fence, passes, note, time.Now().Add(left)
	return h
}

// waits is a claim that waits since some time.
func (s *stage) waits(owner string, since time.Duration) driver.Holder {
	return driver.Holder{PublicID: driver.PublicID(owner), Owner: who[owner], Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Since: s.began.Add(-since)}
}

// as is a claim of another kind.
func as(h driver.Holder, kind driver.Kind, weight, limit int) driver.Holder {
	h.Kind, h.Weight, h.Limit, h.Fence = kind, weight, limit, 0
	return h
}

// lines are all names as they stand in this act.
func (s *stage) lines() []driver.Line {
	const m, h = time.Minute, time.Hour
	acts := [][]driver.Holder{
		{s.holds("deploy-4", 1207, 6*m+12*time.Second, 13*time.Second, 0, "add column orders.vat")},
		{s.holds("deploy-4", 1207, 6*m+12*time.Second, 13*time.Second, 0, "add column orders.vat"), s.waits("deploy-7", 4*m+2*time.Second)},
		{s.holds("deploy-7", 1208, 0, 14*time.Second, 0, "backfill orders.vat"), s.waits("deploy-9", 48*time.Second)},
		{s.holds("deploy-7", 1208, 0, 14*time.Second, 0, "backfill orders.vat"), s.waits("deploy-9", 48*time.Second), s.waits("ana", 3*time.Second)},
	}
	stuck := s.holds("indexer", 88, 2*h+41*m, 4*time.Second, 0, "")
	stuck.Broken = true
	queue := []driver.Holder{s.holds("billing-1", 4410, 900*time.Millisecond, 14*time.Second, 3, "invoice 8812")}
	for i := range 6 {
		w := s.waits("billing-2", time.Duration(6-i)*300*time.Millisecond)
		w.PublicID = driver.PublicID(string(rune('a' + i)))
		queue = append(queue, w)
	}
	all := []driver.Line{
		{Name: "billing/invoices", Fence: 4410, Claims: queue},
		{Name: "billing/refunds", Fence: 310, Claims: []driver.Holder{s.holds("billing-2", 310, 12*time.Second, 9*time.Second, 0, "")}},
		{Name: "cron/nightly-report", Fence: 512, Claims: []driver.Holder{s.holds("scheduler-1", 512, 12*m+40*time.Second, 11*time.Second, 0, ""), s.waits("scheduler-2", 12*m+38*time.Second)}},
		{Name: "elections/scheduler", Fence: 17, Claims: []driver.Holder{s.holds("scheduler-1", 17, 3*24*h+4*h, 12*time.Second, 0, ""), s.waits("scheduler-2", 3*24*h+2*h)}},
		{Name: played, Fence: 1208, Claims: acts[min(s.act, len(acts)-1)]},
		{Name: "reports/weekly", Claims: []driver.Holder{
			as(s.holds("reports-1", 0, 4*m, 10*time.Second, 0, ""), driver.Read, 1, driver.All), as(s.holds("reports-2", 0, 3*m, 8*time.Second, 0, ""), driver.Read, 1, driver.All),
		}},
		{Name: "search/reindex", Fence: 88, Claims: []driver.Holder{stuck, s.waits("reports-2", 26*m)}},
		{Name: "shop/stock/4711", Fence: 96012, Claims: []driver.Holder{s.holds("billing-2", 96012, 200*time.Millisecond, 15*time.Second, 12, "")}},
		{Name: "uploads/transcode", Claims: []driver.Holder{
			as(s.holds("billing-1", 0, 71*time.Second, 12*time.Second, 0, ""), driver.Permit, 2, 4), as(s.holds("billing-2", 0, 35*time.Second, 13*time.Second, 0, ""), driver.Permit, 2, 4),
			as(s.waits("reports-1", 20*time.Second), driver.Permit, 1, 4), as(s.waits("indexer", 5*time.Second), driver.Permit, 1, 4),
		}},
	}
	slices.SortFunc(all, func(a, b driver.Line) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
