package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
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

// Writing has Doctor take a lock of its own, break it, and take it again, and has the driver write what only writing shows, as how long the
// disk takes. The lock is one of interlock-doctor-0 to interlock-doctor-15: what a store keeps of a name that was locked, as its last token, it
// keeps of these. Nothing else of it stays.
func Writing() DoctorOption { return func(e *driver.Exam) { e.Write = true } }

// The bounds of a look at the store.
const (
	looks        = 20              // for the latency
	looksEnd     = 2 * time.Second // after which one that came back was the last of them
	listingEnd   = 3 * time.Second
	examEnd      = 15 * time.Second
	rehearsalTTL = 3 * time.Second // at most: some stores tell the holder by its next renewal
	doctorPrefix = "interlock-doctor-"
)

// Doctor looks at the store, with this client's own rights, for what would hurt locks: by checks that hold on every store, and by those that
// the driver brings. It writes nothing, but with the option Writing. It takes a second or a few, and reads the names that are held: it is for
// the start of a service, or somebody who looks, and not for a probe that asks again and again, which is Health.
//
// The error matches ErrUnavailable where the store does not answer; with it comes what was found until then. What is wrong with a store
// that answers is no error: look at Report.Worst.
func (c *Client) Doctor(ctx context.Context, o ...DoctorOption) (*Report, error) {
	usual := settings{ttl: c.opts.TTL, grace: c.opts.Grace}
	_ = usual.check(c.traits) // as New has checked; it fills in the grace
	exam := driver.Exam{TTL: usual.ttl, Grace: usual.grace}
	for _, choose := range o {
		choose(&exam)
	}
	r := &Report{Findings: []Finding{}}
	err := c.examine(ctx, exam, func(f ...Finding) { r.Findings = append(r.Findings, f...) })
	r.Findings = fold(r.Findings)
	if err != nil { // whatever was well until then is no guarantee
		r.Guarantee = "The store does not answer, so not all was looked at, and what it keeps is not known."
		return r, fmt.Errorf("interlock: doctor: %w", unavailable(err))
	}
	r.Guarantee = guarantee(c.traits, r)
	return r, nil
}

// examine makes all checks, until one shows that the store does not answer. Where the driver's own checks are answered and say that no lock can
// be had, as of a server that has become a replica, that is why the others are not.
func (c *Client) examine(ctx context.Context, e driver.Exam, found func(...Finding)) error {
	latency, unmeasured := c.measure(ctx, e)
	failed := unmeasured
	if unmeasured == nil {
		found(latency, c.lifetime(e))
		names, unlisted := c.listing(ctx)
		if failed = unlisted; unlisted == nil {
			found(names)
		}
	}
	own, err := c.examined(ctx, e)
	if found(own...); err != nil || failed != nil {
		if err == nil && slices.ContainsFunc(own, func(f Finding) bool { return f.Level == driver.LevelBad }) {
			found(Finding{Title: "names", Level: driver.LevelSkip, Seen: failed.Error()})
			return nil
		}
		return cmp.Or(failed, err)
	}
	if !e.Write {
		return nil
	}
	f, err := c.rehearse(ctx, e)
	if err == nil {
		found(f)
	}
	return err
}

// measure looks at a name that nobody has, time after time. What it takes is what a renewal takes: a request and its answer. More than half of the
// time between two renewals, time after time, leaves no second try; more than the grace once is a warning.
func (c *Client) measure(ctx context.Context, e driver.Exam) (f Finding, err error) {
	f = Finding{Code: "L6", Title: "latency"}
	store, ok := c.driver.(driver.Inspector)
	if !ok {
		f.Level, f.Seen = driver.LevelSkip, "the store cannot be looked into"
		return f, nil
	}
	var took []time.Duration
	began := c.clock.Now()
	for len(took) < looks && c.clock.Since(began) < looksEnd {
		bounded, cancel := context.WithTimeout(ctx, c.opts.Patience)
		asked := c.clock.Now()
		_, err := store.Line(bounded, doctorPrefix+driver.NewID())
		took = append(took, c.clock.Since(asked))
		cancel()
		switch {
		case err == nil:
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, driver.ErrRefused):
			f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("a name of the doctor's own cannot be looked at: %v", err)
			return f, nil
		default:
			return f, err
		}
	}
	slices.Sort(took)
	middle, worst := took[len(took)/2], took[len(took)-1]
	f.Seen = fmt.Sprintf("of %d answers half took up to %v, and the slowest %v; the TTL is %v, and a grace %v of it", len(took), short(middle), short(worst), e.TTL, e.Grace)
	const mend = "a longer TTL (Options.TTL, --ttl); a store that is nearer, or has less to do beside locks"
	switch {
	case middle > (e.TTL-e.Grace)/6:
		f.Level, f.Why, f.Mend = driver.LevelBad, "a renewal that is late by one try is too late: holders lose their locks", mend
	case worst > e.Grace:
		f.Level, f.Why, f.Mend = driver.LevelWarn, "some answers take longer than a grace: a few of them in a row and a holder loses its lock", mend
	}
	return f, nil
}

// short is a time with three digits.
func short(d time.Duration) time.Duration {
	for unit := time.Nanosecond; unit <= time.Second; unit *= 10 {
		if d < 1000*unit {
			return d / unit * unit
		}
	}
	return d / time.Second * time.Second
}

// lifetime says what becomes of the TTL.
func (c *Client) lifetime(e driver.Exam) Finding {
	f := Finding{Code: "A10", Title: "ttl"}
	f.Seen = fmt.Sprintf("%v, which this store keeps", e.TTL)
	if gave, ok := c.gave.Load(e.TTL); ok {
		f.Seen = fmt.Sprintf("%v, for which the store gave %v", e.TTL, gave)
	}
	if c.anyTTL && e.TTL != defaultTTL {
		f.Level = driver.LevelWarn
		f.Seen = fmt.Sprintf("%v: the usual %v is not among what this store keeps", e.TTL, defaultTTL)
		f.Why = "who holds must renew that much more often, or a dead holder is waited for that much longer"
		f.Mend = "choose a TTL by Options.TTL or --ttl, or the store's own bounds"
	}
	return f
}

// listing reads the names that somebody holds or waits for.
func (c *Client) listing(ctx context.Context) (f Finding, err error) {
	f = Finding{Title: "names"}
	store, ok := c.driver.(driver.Inspector)
	if !ok {
		f.Level, f.Seen = driver.LevelSkip, "the store cannot be looked into"
		return f, nil
	}
	bounded, cancel := context.WithTimeout(ctx, listingEnd)
	defer cancel()
	lines, err := store.Lines(bounded, "")
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return f, err
	case errors.Is(err, driver.ErrBadData):
		f.Level, f.Seen = driver.LevelBad, err.Error()
		f.Why = "what stands at the place of a lock is damaged or somebody's data: that name cannot be locked"
		f.Mend = "look at it with the store's own tools, and delete it where nobody holds the lock"
		return f, nil
	case bounded.Err() != nil:
		f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("there are too many to be read within %v", listingEnd)
		return f, nil
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, driver.ErrRefused):
		f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("they cannot be listed: %v", err)
		return f, nil
	default:
		return f, err
	}
	var data []string
	held, waiting := 0, 0
	for _, l := range lines {
		for _, h := range l.Claims {
			switch {
			case !h.Held:
				waiting++
			case h.Foreign && h.Until.IsZero() && h.Note != "":
				data = append(data, fmt.Sprintf("%q: %s", l.Name, h.Note))
			default:
				held++
			}
		}
	}
	f.Seen = fmt.Sprintf("%d claims hold, and %d wait", held, waiting)
	if len(data) > 0 {
		f.Level, f.Seen = driver.LevelBad, strings.Join(data[:min(len(data), 3)], "; ")
		if more := len(data) - 3; more > 0 {
			f.Seen += fmt.Sprintf("; and %d more", more)
		}
		f.Why = "it stands in the place of a lock and never goes: nobody can lock that name"
		f.Mend = "lock under another name, or move the data"
	}
	return f, nil
}

// examined are the checks that the driver brings.
func (c *Client) examined(ctx context.Context, e driver.Exam) ([]Finding, error) {
	none := []Finding{{Title: "checks", Level: driver.LevelSkip, Seen: "this store's driver brings no checks of its own"}}
	x, ok := c.driver.(driver.Examiner)
	if !ok {
		return none, nil
	}
	bounded, cancel := context.WithTimeout(ctx, examEnd)
	defer cancel()
	found, err := x.Examine(bounded, e)
	if errors.Is(err, errors.ErrUnsupported) {
		return none, nil
	}
	return found, err
}

// fold puts together what is the same on several servers: where a check is well on all it is one finding, and else what is wrong is
// one finding for each thing that is, with the servers that have it.
func fold(found []Finding) []Finding {
	folded := []Finding{}
	same := func(f Finding) func(Finding) bool {
		return func(g Finding) bool {
			well := f.Level == driver.LevelOK && g.Level == driver.LevelOK && g.Server != ""
			server := g.Server
			g.Server = f.Server
			return f.Title == g.Title && (well || f == g) && server != ""
		}
	}
	worst := map[string]driver.Level{}
	servers := map[string]int{}
	for _, f := range found {
		worst[f.Title] = max(worst[f.Title], f.Level)
		servers[f.Title]++
	}
	for _, f := range found {
		if f.Server == "" {
			folded = append(folded, f)
			continue
		}
		if f.Level == driver.LevelOK && worst[f.Title] > driver.LevelOK {
			continue
		}
		if i := slices.IndexFunc(folded, same(f)); i >= 0 {
			folded[i].Server += ", " + f.Server
			continue
		}
		folded = append(folded, f)
	}
	for i, f := range folded {
		if n := strings.Count(f.Server, ", ") + 1; n > 1 && n == servers[f.Title] {
			folded[i].Server = "all"
		}
	}
	return folded
}
