package interlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/doctor"
	"github.com/interlock-go/interlock/internal/fault"
)

// Finding is what one check of a store has found, for people and programs.
type Finding = driver.Finding

// Report is what [Client.Doctor] has found.
type Report struct {
	Findings []Finding `json:"findings"` // in the order of the checks

	// Guarantee says in a few sentences what the store keeps as it stands: see docs/guarantees.md.
	Guarantee string `json:"guarantee"`
}

// Worst is the level of the worst finding.
func (r *Report) Worst() driver.Level {
	worst := driver.LevelOK
	for _, f := range r.Findings {
		worst = max(worst, f.Level)
	}
	return worst
}

// Of returns the findings of a level, in order.
func (r *Report) Of(l driver.Level) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level != l })
}

// DoctorOption is one choice for [Client.Doctor].
type DoctorOption func(*driver.Exam)

// Writing has Doctor take a lock of its own, break it, and take it again, and has the driver write
// what only writing shows, as how long the disk takes. The lock is one of interlock-doctor-0 to
// interlock-doctor-15: what a store keeps of a name that was locked, as its last token, it keeps of
// these. Nothing else of it stays.
func Writing() DoctorOption { return func(e *driver.Exam) { e.Write = true } }

// rehearsalTTL is the longest TTL of a rehearsal: some stores tell the holder by its next renewal.
const rehearsalTTL = 3 * time.Second

// Doctor looks at the store, with this client's own rights, for what would hurt locks: by checks
// that hold on every store, and by those that the driver brings. It writes nothing, but with the
// option Writing. It takes a second or a few, and reads the names that are held: it is for the
// start of a service, or somebody who looks, and not for a probe that asks again and again, which
// is Health.
//
// The error matches ErrUnavailable where the store does not answer; with it comes what was found
// until then. What is wrong with a store that answers is no error: look at Report.Worst.
func (c *Client) Doctor(ctx context.Context, o ...DoctorOption) (*Report, error) {
	exam := driver.Exam{TTL: c.opts.TTL, Grace: c.defaults.want.Grace}
	for _, choose := range o {
		choose(&exam)
	}
	r := &Report{Findings: []Finding{}}
	store := doctor.Store{Driver: c.driver, Clock: c.clock, Patience: c.opts.Patience}
	if c.anyTTL {
		store.Usual = defaultTTL
	}
	if gave, ok := c.gave.Load(c.opts.TTL); ok {
		store.Kept = gave.(time.Duration)
	}
	found, err := store.Examine(ctx, exam, c.rehearse)
	r.Findings = append(r.Findings, found...)
	if err != nil { // whatever was well until then is no guarantee
		r.Guarantee = "The store does not answer, so not all was looked at, and what it keeps is not known."
		return r, fmt.Errorf("interlock: doctor: %w", fault.Unavailable(err))
	}
	r.Guarantee = doctor.Guarantee(c.traits, r.Findings)
	return r, nil
}
