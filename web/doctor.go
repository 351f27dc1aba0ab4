package web

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/caught"
	"github.com/interlock-go/interlock/internal/printable"
)

// The pace of examinations, of each store.
const (
	examPace   = time.Minute // from the end of one to the beginning of the next
	examFactor = 50          // of what it took: a fiftieth of its time at most the store is busy with it
)

// examined is the newest examination of a store.
type examined struct {
	mu     sync.Mutex
	report *interlock.Report // nil before the first
	err    error             // why it is not whole
	at     time.Time         // when it began
	next   time.Time         // none before
	under  chan struct{}     // closed when that under way has ended; nil while there is none
}

// examine returns the newest examination. One that is due is made first, one for all who ask meanwhile, and waited for until ctx ends; then what there is
// is returned, nil before the first. Nobody who does not look has a store examined.
func (b *hub) examine(ctx context.Context) *doctorAnswer {
	x := &b.exam
	x.mu.Lock()
	if x.under == nil && !time.Now().Before(x.next) && b.h.begin() {
		x.under = make(chan struct{})
		go b.examines()
	}
	under := x.under
	x.mu.Unlock()
	if under != nil {
		select {
		case <-under:
		case <-ctx.Done():
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.report == nil {
		return nil
	}
	return &doctorAnswer{At: x.at.UTC(), Worst: x.report.Worst(), Guarantee: x.report.Guarantee, Findings: x.report.Findings, err: x.err}
}

// examines makes an examination.
func (b *hub) examines() {
	defer b.h.work.Done()
	began := time.Now()
	report, err := b.examination()
	if report == nil {
		report = &interlock.Report{Findings: []interlock.Finding{}}
	}
	x := &b.exam
	x.mu.Lock()
	defer x.mu.Unlock()
	x.report, x.err, x.at = report, err, began
	x.next = time.Now().Add(max(examPace, examFactor*time.Since(began)))
	close(x.under)
	x.under = nil
}

// examination looks at a store as interlock doctor does, without writing.
func (b *hub) examination() (_ *interlock.Report, err error) {
	defer caught.Panic(&err, b.h.log, b.store.Name)
	c, err := interlock.New(b.store.Driver, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // which leaves the driver open
	return c.Doctor(b.h.ctx)
}

// doctorAnswer is an examination as programs read it.
type doctorAnswer struct {
	At        time.Time        `json:"at"`
	Worst     driver.Level     `json:"worst"`
	Guarantee string           `json:"guarantee"` // as the store stands
	Findings  []driver.Finding `json:"findings"`
	Failure   string           `json:"failure,omitempty"` // why there may be more

	err error
}

// hidden is what of a finding only those may read who may read every name: there may be names in it.
const hidden = "what was seen may be read by those who may read every name"

// told is an examination as somebody may read it.
func (a *doctorAnswer) told(who Principal) *doctorAnswer {
	if a == nil {
		return nil
	}
	told := *a
	if a.err != nil {
		told.Failure = who.told(a.err)
	}
	if who.mayRead("") {
		return &told
	}
	told.Findings = []driver.Finding{}
	for _, f := range a.Findings {
		f.Seen, f.Server = hidden, ""
		if f.Mend != "" {
			f.Mend = hidden
		}
		told.Findings = append(told.Findings, f)
	}
	return &told
}

// doctorView is an examination as a page has it.
type doctorView struct {
	Class, Guarantee, Failure string
	At                        *moment
	Wrong, Skipped, Well      []findingView
}

// findingView is a finding as a page has it.
type findingView struct {
	Class, Level, Code, Title, Server, Seen, Why, Mend string
}

// levelClasses are the colours of levels, which are told by their names, too.
var levelClasses = map[driver.Level]string{driver.LevelOK: "held", driver.LevelSkip: "soft", driver.LevelWarn: "waits", driver.LevelBad: "broken"}

// view is an examination as a page has it at some time, nil before the first.
func (a *doctorAnswer) view(now time.Time) *doctorView {
	if a == nil {
		return nil
	}
	v := &doctorView{Class: levelClasses[a.Worst], Guarantee: printable.Text(a.Guarantee), Failure: a.Failure, At: ago(a.At, now)}
	for _, f := range a.Findings {
		shown := findingView{
			Class: levelClasses[f.Level], Level: f.Level.String(), Code: f.Code, Title: printable.Text(f.Title), Server: printable.Text(f.Server),
			Seen: printable.Text(f.Seen), Why: printable.Text(f.Why), Mend: printable.Text(f.Mend),
		}
		switch f.Level {
		case driver.LevelOK:
			v.Well = append(v.Well, shown)
		case driver.LevelSkip:
			v.Skipped = append(v.Skipped, shown)
		default:
			v.Wrong = append(v.Wrong, shown)
		}
	}
	return v
}
