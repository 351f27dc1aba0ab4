package interlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// patient is a store that brings checks of its own, or looks as it is told.
type patient struct {
	*memlock.Driver
	findings []driver.Finding
	err      error
	exams    []driver.Exam
	look     func(ctx context.Context, name string) (driver.Line, error)
	list     func(ctx context.Context) ([]driver.Line, error)
}

func (d *patient) Examine(_ context.Context, e driver.Exam) ([]driver.Finding, error) {
	d.exams = append(d.exams, e)
	return d.findings, d.err
}

func (d *patient) Line(ctx context.Context, name string) (driver.Line, error) {
	if d.look != nil {
		return d.look(ctx, name)
	}
	return d.Driver.Line(ctx, name)
}

func (d *patient) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	if d.list != nil {
		return d.list(ctx)
	}
	return d.Driver.Lines(ctx, prefix)
}

// of returns the findings of a title.
func of(r *interlock.Report, title string) []interlock.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f interlock.Finding) bool { return f.Title != title })
}

// A healthy store has no finding; each thing that is wrong has its own, and no other.
func TestDoctor_EachHasItsOwnFinding(t *testing.T) {
	const ttl = 15 * time.Second
	pauses := func(d ...time.Duration) func(context.Context, string) (driver.Line, error) {
		return func(_ context.Context, name string) (driver.Line, error) {
			time.Sleep(d[0])
			d = append(d[1:], d[0])
			return driver.Line{Name: name}, nil
		}
	}
	answers := func(err error) func(context.Context, string) (driver.Line, error) {
		return func(_ context.Context, name string) (driver.Line, error) { return driver.Line{Name: name}, err }
	}
	lists := func(err error, lines ...driver.Line) func(context.Context) ([]driver.Line, error) {
		return func(context.Context) ([]driver.Line, error) { return lines, err }
	}
	data := driver.Line{Name: "a", Claims: []driver.Holder{{Held: true, Foreign: true, Note: "somebody's data"}}}
	for name, c := range map[string]struct {
		store *patient
		o     interlock.Options
		title string
		level driver.Level
		says  string
	}{
		"a healthy one":       {store: &patient{}},
		"with findings ok":    {store: &patient{findings: []driver.Finding{{Title: "disk", Seen: "it is there"}}}},
		"a slow one":          {store: &patient{look: pauses(2300 * time.Millisecond)}, title: "latency", level: driver.LevelBad, says: "of 1 answers half took up to 2.3s"},
		"slow now and then":   {store: &patient{look: pauses(1, 1, 1, 1600*time.Millisecond)}, title: "latency", level: driver.LevelWarn, says: "the slowest 1.6s"},
		"far away":            {store: &patient{look: pauses(200 * time.Millisecond)}, says: "of 5 answers"},
		"fast enough":         {store: &patient{look: pauses(1400 * time.Millisecond)}},
		"denied":              {store: &patient{look: answers(driver.ErrRefused)}, title: "latency", level: driver.LevelSkip, says: "cannot be looked at"},
		"data in the way":     {store: &patient{list: lists(nil, data)}, title: "names", level: driver.LevelBad, says: `"a": somebody's data`},
		"damaged":             {store: &patient{list: lists(fmt.Errorf("b: %w", driver.ErrBadData))}, title: "names", level: driver.LevelBad, says: "b: bad data"},
		"not to be listed":    {store: &patient{list: lists(errors.ErrUnsupported)}, title: "names", level: driver.LevelSkip, says: "cannot be listed"},
		"another one's locks": {store: &patient{list: lists(nil, driver.Line{Claims: []driver.Holder{{Held: true, Foreign: true}, {}}})}},
		"too many names": {store: &patient{list: func(ctx context.Context) ([]driver.Line, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, title: "names", level: driver.LevelSkip, says: "too many"},
		"no checks":      {store: &patient{err: errors.ErrUnsupported}, title: "checks", level: driver.LevelSkip, says: "brings no checks"},
		"its own":        {store: &patient{findings: []driver.Finding{{Title: "disk", Level: driver.LevelWarn, Seen: "full"}}}, title: "disk", level: driver.LevelWarn, says: "full"},
		"its own is bad": {store: &patient{findings: []driver.Finding{{Title: "disk", Level: driver.LevelBad, Seen: "none"}}}, title: "disk", level: driver.LevelBad, says: "none"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.store.Driver = memlock.New()
			client := newClient(t, c.store, &c.o)
			r, err := client.Doctor(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, f := range r.Findings {
				if (f.Level != driver.LevelOK) != (f.Title == c.title) {
					t.Errorf("%s: %+v; want %q to be the only finding", name, f, c.title)
				}
				if f.Level > driver.LevelSkip && f.Title != "disk" && (f.Why == "" || f.Mend == "") {
					t.Errorf("%s: %+v; want why it matters and how to mend it", name, f)
				}
			}
			if got := of(r, "latency"); c.title == "" && c.says != "" && !strings.Contains(got[0].Seen, c.says) {
				t.Errorf("%s: %+v; want that it says %q", name, got, c.says)
			}
			if got := of(r, c.title); c.title != "" && (len(got) != 1 || got[0].Level != c.level || !strings.Contains(got[0].Seen, c.says)) {
				t.Errorf("%s: %+v; want one finding %v that says %q", name, got, c.level, c.says)
			}
			if r.Worst() != c.level {
				t.Errorf("%s: the worst is %v, want %v", name, r.Worst(), c.level)
			}
			if want := []driver.Exam{{TTL: ttl, Grace: ttl / 10}}; !slices.Equal(c.store.exams, want) {
				t.Errorf("%s: examined as %+v, want %+v", name, c.store.exams, want)
			}
		})
	}
}

// A store that keeps no TTL of 15 s says so, unless another one was chosen.
func TestDoctor_TTL(t *testing.T) {
	bubble(t, func(t *testing.T) {
		short := &bounds{Driver: memlock.New(), max: 3 * time.Second}
		for _, o := range []*interlock.Options{nil, {TTL: 2 * time.Second}} {
			r := must[*interlock.Report](t)(newClient(t, short, o).Doctor(t.Context()))
			if got := of(r, "ttl")[0]; (got.Level == driver.LevelWarn) != (o == nil) {
				t.Errorf("%+v with %+v", got, o)
			}
		}
	})
}

// bounds is a store with a shorter longest TTL.
type bounds struct {
	*memlock.Driver
	max time.Duration
}

func (d *bounds) Traits() driver.Traits {
	t := d.Driver.Traits()
	t.MaxTTL = d.max
	return t
}

// A store that does not answer is no finding, whichever check meets it; what was found until then
// is there.
func TestDoctor_Unavailable(t *testing.T) {
	gone := errors.New("connection reset")
	for name, c := range map[string]struct {
		store *patient
		found int
	}{
		"at once":  {&patient{look: func(context.Context, string) (driver.Line, error) { return driver.Line{}, gone }}, 0},
		"listing":  {&patient{list: func(context.Context) ([]driver.Line, error) { return nil, gone }}, 2},
		"but says": {&patient{look: func(context.Context, string) (driver.Line, error) { return driver.Line{}, gone }, findings: []driver.Finding{{Title: "disk", Level: driver.LevelWarn}}}, 1},
		"its own":  {&patient{err: gone, findings: []driver.Finding{{Title: "disk"}}}, 4},
		"a silent": {&patient{look: func(ctx context.Context, _ string) (driver.Line, error) { <-ctx.Done(); return driver.Line{}, gone }}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.store.Driver = memlock.New()
			r, err := newClient(t, c.store, nil).Doctor(t.Context())
			matches(t, err, interlock.ErrUnavailable, gone)
			if len(r.Findings) != c.found {
				t.Errorf("%s: %+v, want %d", name, r.Findings, c.found)
			}
			if !strings.Contains(r.Guarantee, "not all was looked at") || strings.Contains(r.Guarantee, "keeps the promises") {
				t.Errorf("%s: %q; want that not all was looked at", name, r.Guarantee)
			}
		})
	}
}

// Where the store's own checks say why nothing else is answered, that is a finding, and no silence.
func TestDoctor_TheStoreSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &patient{
			Driver: memlock.New(), findings: []driver.Finding{{Title: "role", Level: driver.LevelBad, Why: "a replica"}},
			look: func(context.Context, string) (driver.Line, error) { return driver.Line{}, errors.New("read only") },
		}
		r := must[*interlock.Report](t)(newClient(t, store, nil).Doctor(t.Context(), interlock.Writing()))
		if len(r.Findings) != 2 || r.Findings[0].Title != "role" || r.Findings[1].Level != driver.LevelSkip || !strings.Contains(r.Findings[1].Seen, "read only") {
			t.Errorf("%+v; want the role, and that nothing else was looked at", r.Findings)
		}
	})
}

// It writes nothing, but with leave: then it has taken, broken and taken a lock, and nothing of it
// stays.
func TestDoctor_WritesOnlyWithLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &spy{Driver: memlock.New()}
		c := newClient(t, store, nil)
		r := must[*interlock.Report](t)(c.Doctor(t.Context()))
		if store.count("open") != 0 || store.count("acquire") != 0 || len(of(r, "rehearsal")) != 0 {
			t.Errorf("%d sessions, %d acquires, %+v; want none", store.count("open"), store.count("acquire"), r.Findings)
		}
		r = must[*interlock.Report](t)(c.Doctor(t.Context(), interlock.Writing()))
		if got := of(r, "rehearsal"); len(got) != 1 || got[0].Level != driver.LevelOK || !strings.Contains(got[0].Seen, "broken and told of it in") {
			t.Errorf("%+v; want that a lock was taken, broken and taken again", got)
		}
		synctest.Wait()
		if lines := must[[]driver.Line](t)(store.Lines(t.Context(), "")); len(lines) != 0 {
			t.Errorf("%+v stays", lines)
		}
		names := map[string]bool{}
		store.ahead(func(_ context.Context, op string, claim driver.Claim) error {
			if op == "acquire" {
				names[claim.Name] = true
			}
			return nil
		})
		for range 50 {
			must[*interlock.Report](t)(c.Doctor(t.Context(), interlock.Writing()))
		}
		if len(names) > 16 || len(names) < 2 {
			t.Errorf("it locked %d names; want at most 16, since a store may keep something of each", len(names))
		}
		store.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op == "acquire" {
				return fmt.Errorf("no right: %w", driver.ErrRefused)
			}
			return nil
		})
		r = must[*interlock.Report](t)(c.Doctor(t.Context(), interlock.Writing()))
		if got := of(r, "rehearsal"); len(got) != 1 || got[0].Level != driver.LevelBad || !strings.Contains(got[0].Seen, "no right") {
			t.Errorf("%+v; want that no lock can be taken, and why", got)
		}
	})
}

// A rehearsal has a shorter TTL than other locks, and a grace that goes with that.
func TestDoctor_WritesWithALongGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), &interlock.Options{TTL: time.Minute, Grace: 20 * time.Second})
		r := must[*interlock.Report](t)(c.Doctor(t.Context(), interlock.Writing()))
		if got := of(r, "rehearsal"); len(got) != 1 || got[0].Level != driver.LevelOK {
			t.Errorf("%+v; want that a lock was taken", got)
		}
	})
}

// What is the same on several servers is told once, with the servers; where a check is well on
// some, those are not told.
func TestDoctor_SeveralServers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := func(title, server string, l driver.Level, seen string) driver.Finding {
			return driver.Finding{Title: title, Server: server, Level: l, Seen: seen}
		}
		store := &patient{Driver: memlock.New(), findings: []driver.Finding{
			f("disk", "a", driver.LevelOK, "10 GB"), f("log", "a", driver.LevelBad, "off"), f("fill", "a", driver.LevelWarn, "90 %"), f("set", "", driver.LevelOK, "2"),
			f("disk", "b", driver.LevelOK, "20 GB"), f("log", "b", driver.LevelOK, "on"), f("fill", "b", driver.LevelWarn, "90 %"),
			f("disk", "c", driver.LevelOK, "30 GB"), f("log", "c", driver.LevelBad, "off"), f("fill", "c", driver.LevelWarn, "90 %"),
		}}
		r := must[*interlock.Report](t)(newClient(t, store, nil).Doctor(t.Context()))
		want := []driver.Finding{
			f("disk", "all", driver.LevelOK, "10 GB"), f("log", "a, c", driver.LevelBad, "off"), f("fill", "all", driver.LevelWarn, "90 %"), f("set", "", driver.LevelOK, "2"),
		}
		if got := r.Findings[3:]; !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// A store that is opened with a base for its tokens brings its checks all the same.
func TestDoctor_WithAFenceBase(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &patient{Driver: memlock.New(), findings: []driver.Finding{{Title: "disk"}}}
		o := &interlock.Options{FenceBase: 1000}
		if r := must[*interlock.Report](t)(newClient(t, store, o).Doctor(t.Context())); len(of(r, "disk")) != 1 {
			t.Errorf("%+v; want the store's own check", r.Findings)
		}
		if r := must[*interlock.Report](t)(newClient(t, memlock.New(), o).Doctor(t.Context())); len(of(r, "checks")) != 1 {
			t.Errorf("%+v; want that there are no checks", r.Findings)
		}
	})
}

// The guarantee is that of the traits, and says first what does not keep it.
func TestDoctor_Guarantee(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for level, begins := range map[driver.Level]string{
			driver.LevelOK:   "It keeps the promises of its page. ",
			driver.LevelWarn: "It keeps the promises of its page, for now: disk. ",
			driver.LevelBad:  "It does not keep the promises of its page: disk. ",
		} {
			store := &patient{Driver: memlock.New(), findings: []driver.Finding{{Title: "disk", Level: level}}}
			r := must[*interlock.Report](t)(newClient(t, store, nil).Doctor(t.Context()))
			if want := begins + "A lock does not survive the end of its process, a restart of the store or one of the store's machine. " +
				"Tokens grow until the store restarts or forgets. Who has died is out when the TTL is over."; r.Guarantee != want {
				t.Errorf("%q, want %q", r.Guarantee, want)
			}
			text, err := json.Marshal(r)
			var again interlock.Report
			if err == nil {
				err = json.Unmarshal(text, &again)
			}
			if err != nil || !slices.Equal(again.Findings, r.Findings) || !strings.Contains(string(text), `"level":"`+level.String()+`"`) {
				t.Errorf("%s: %v", text, err)
			}
		}
		if err := new(driver.Level).UnmarshalText([]byte("grave")); err == nil {
			t.Error("any word is a level")
		}
	})
}

// A store in which nobody is seen, or whose user may not use the doctor's own names, is not bad for
// that.
func TestDoctor_RehearsalOfFewRights(t *testing.T) {
	for name, c := range map[string]struct {
		look, acquire error
		want          driver.Level
	}{
		"nobody is seen":         {look: errors.ErrUnsupported, want: driver.LevelOK},
		"its names are denied":   {look: driver.ErrRefused, acquire: driver.ErrRefused, want: driver.LevelSkip},
		"all locking is refused": {acquire: driver.ErrRefused, want: driver.LevelBad},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem := &patient{Driver: memlock.New()}
			if c.look != nil {
				mem.look = func(_ context.Context, name string) (driver.Line, error) { return driver.Line{Name: name}, c.look }
			}
			client := newClient(t, &denying{patient: mem, err: c.acquire}, nil)
			r := must[*interlock.Report](t)(client.Doctor(t.Context(), interlock.Writing()))
			if got := of(r, "rehearsal"); len(got) != 1 || got[0].Level != c.want {
				t.Errorf("%s: %+v; want %v", name, got, c.want)
			}
		})
	}
}

// denying is a store that lets nobody lock, if it has an error.
type denying struct {
	*patient
	err error
}

func (d *denying) Open(ctx context.Context, s driver.Spec) (driver.Session, error) {
	if d.err != nil {
		return nil, d.err
	}
	return d.patient.Open(ctx, s)
}

// Many who rehearse at once do so one after the other, and none of them finds anything.
func TestDoctor_RehearsalsBesideEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		var all sync.WaitGroup
		for range 40 {
			c := newClient(t, store, nil)
			all.Go(func() {
				r, err := c.Doctor(t.Context(), interlock.Writing())
				if err != nil || r.Worst() > driver.LevelSkip {
					t.Errorf("%+v, %v; want that all is well", r, err)
				}
			})
		}
		all.Wait()
	})
}
