package web

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// doctorAnswer is an examination as programs read it.
type doctorAnswer struct {
	At        time.Time        `json:"at"`
	Worst     driver.Level     `json:"worst"`
	Guarantee string           `json:"guarantee"` // as the store stands
	Findings  []driver.Finding `json:"findings"`
	Failure   string           `json:"failure,omitempty"` // why there may be more
}

// hidden stands for what a finding has seen, where the principal may not read every name: there may
// be names in it.
const hidden = "what was seen may be read by those who may read every name"

// doctorOf returns an examination as somebody may read it, nil before the first.
func doctorOf(x *hub.Examination, who Principal) *doctorAnswer {
	if x == nil {
		return nil
	}
	a := &doctorAnswer{At: x.At.UTC(), Worst: x.Report.Worst(), Guarantee: x.Report.Guarantee, Findings: x.Report.Findings}
	if x.Err != nil {
		a.Failure = who.reason(x.Err)
	}
	if who.mayRead("") {
		return a
	}
	a.Findings = []driver.Finding{}
	for _, f := range x.Report.Findings {
		f.Seen, f.Server = hidden, ""
		if f.Mend != "" {
			f.Mend = hidden
		}
		a.Findings = append(a.Findings, f)
	}
	return a
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

// levelClasses are the classes of levels, for their colours.
var levelClasses = map[driver.Level]string{driver.LevelOK: "held", driver.LevelSkip: "soft", driver.LevelWarn: "waits", driver.LevelBad: "broken"}

// view returns the examination as a page has it, nil before the first.
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
