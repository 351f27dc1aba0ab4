package shedlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Open implements rowline.Store. Nothing stands in the table for a session, so it only looks
// whether that answers.
func (t *table) Open(ctx context.Context, spec driver.Spec) (clock int64, err error) {
	_, clock, err = t.rows(ctx, t.among())
	t.specs.Store(spec.ID, spec)
	return clock, err
}

// spec is what a session was opened with.
func (t *table) spec(session string) driver.Spec {
	spec, _ := t.specs.Load(session)
	s, _ := spec.(driver.Spec)
	return s
}

// seconds is for how long a lock of a session is taken. The table's times are rounded.
func (t *table) seconds(s driver.Spec) float64 { return (s.TTL + 2*t.unit).Seconds() }

// Step implements rowline.Store. Package sql closes a connection whose context ends, and with it
// goes what came of the statement: so that is made apart from its caller.
func (t *table) Step(ctx context.Context, s rowline.Step, _ time.Duration) (rowline.Answer, error) {
	var a rowline.Answer
	end, _ := ctx.Deadline()
	err := sessions.Aside(ctx, 0, func(context.Context) (err error) {
		ctx, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		a, err = t.step(ctx, s) //nolint:contextcheck // it outlives the caller
		return err
	})
	if err != nil {
		return rowline.Answer{}, err // a may be written yet
	}
	return a, nil
}

func (t *table) step(ctx context.Context, s rowline.Step) (rowline.Answer, error) {
	switch {
	case s.New == nil:
		n, err := t.exec(ctx, release, t.among(rowline.Known{Name: s.Name, ID: s.Old}))
		return rowline.Answer{Was: n > 0}, err
	case s.Held:
		return t.extend(ctx, s)
	}
	return t.enter(ctx, s)
}

// extend renews a claim.
func (t *table) extend(ctx context.Context, s rowline.Step) (rowline.Answer, error) {
	_, changed, err := t.Renew(ctx, s.Session, []rowline.Known{{Name: s.Name, ID: s.New.ID, Held: true}}, 0)
	if a, gone := changed[s.New.ID]; gone || err != nil {
		return a, err
	}
	return rowline.Answer{State: rowline.Held}, nil
}

// enter takes the name's row where it is free. Who has waited looks first: most looks find it held,
// and one that does not write is in nobody's way. A row that is free behind an attempt costs
// another one: somebody has come and gone.
func (t *table) enter(ctx context.Context, s rowline.Step) (rowline.Answer, error) {
	if err := t.check(s.New); err != nil {
		return rowline.Answer{}, err
	}
	spec, name, statement := t.spec(s.Session), t.sql(":text", s.Name), take
	by, mine := t.sql(":text", lockedBy(s.New.ID, spec)), t.among(rowline.Known{Name: s.Name, ID: s.New.ID})
	a := rowline.Answer{State: rowline.Out, Left: soonest}
	if s.New.Queue {
		a.State = rowline.Waiting
	}
	hidden := true
	for tried := range 4 {
		if tried > 0 || !s.Again {
			n, err := t.exec(ctx, statement, t.seconds(spec), by, moment(s.Deadline), name, t.row(s.Name), mine)
			if err != nil || n > 0 {
				return rowline.Answer{State: rowline.Held}, err
			}
		}
		rows, now, err := t.rows(ctx, "name = "+name)
		switch {
		case err != nil:
			return rowline.Answer{}, err
		case len(rows) > 0 && rows[0].name != s.Name:
			return rowline.Answer{}, refusedName("the table takes the name for %q, which stands there: want names that differ in more than case, accents and blanks at the end", rows[0].name)
		case len(rows) > 0 && rows[0].live && rows[0].id() == s.New.ID: // an answer was lost
			return t.extend(ctx, s)
		case len(rows) > 0 && rows[0].live:
			held := time.Duration(now-rows[0].at) * time.Microsecond
			a.Left, a.Holder = min(max(held, soonest), latest)*time.Duration(80+rand.IntN(20))/100, rows[0].holder()
			return a, nil
		}
		if statement = take; len(rows) == 0 {
			statement = insert
		} else {
			hidden = false
		}
		if end, _ := ctx.Deadline(); now > s.Deadline { // the clock has been set, or has gained
			s.Deadline = now + (time.Until(end) * 3 / 4).Microseconds()
		}
	}
	if hidden && !s.Again {
		return rowline.Answer{}, refused("the table has no row for the name, and takes none: want names that differ for its key, and a user who sees all rows")
	}
	return a, nil // to others, who come and go
}

// Renew implements rowline.Store. Who waits stands nowhere. How many rows were changed tells
// mostly: it says too little where the same time stood there already, which some clients do not
// count.
func (t *table) Renew(ctx context.Context, session string, claims []rowline.Known, _ time.Duration) (clock int64, changed map[string]rowline.Answer, err error) {
	claims = slices.DeleteFunc(claims, func(c rowline.Known) bool { return !c.Held })
	if len(claims) > 0 {
		n, err := t.exec(ctx, renew, t.seconds(t.spec(session)), t.among(claims...))
		if err != nil || n == int64(len(claims)) {
			return 0, nil, err
		}
	}
	rows, clock, err := t.rows(ctx, t.sql("lock_until > :now and %s", t.among(claims...)))
	changed = map[string]rowline.Answer{}
	for _, c := range claims {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.id() == c.ID }) {
			changed[c.ID] = rowline.Answer{State: rowline.Gone}
		}
	}
	return clock, changed, err
}

// Finish implements rowline.Store.
func (t *table) Finish(ctx context.Context, session string, names []string) error {
	t.specs.Delete(session)
	if len(names) == 0 {
		return nil
	}
	for i, name := range names {
		names[i] = t.sql(":text", name)
	}
	_, err := t.exec(ctx, release, fmt.Sprintf("name in (%s) and substring(locked_by, %d, %d) = '%s'", strings.Join(names, ", "), marked+2, idLength, session))
	return err
}

// check refuses a claim that cannot be kept.
func (t *table) check(c *driver.Claim) error {
	n := utf8.RuneCountInString(c.Name)
	strange := func(r rune) bool { return r == 0 || t.ascii && r > '~' }
	switch {
	case c.Kind != driver.Mutex:
		return refused("a %s: ShedLock has mutexes alone", c.Kind)
	case n > t.longest || !utf8.ValidString(c.Name) || strings.IndexFunc(c.Name, strange) >= 0:
		return refusedName("a name of %d characters: the table keeps 1 to %d, of UTF-8 without zeros, or of ASCII where its character set is not utf8mb4", n, t.longest)
	}
	return nil
}
