// Package doctor looks at a store for what would hurt locks: by checks that hold on every store,
// and by those that its driver brings. The core shows what it found as [interlock.Client.Doctor].
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// The bounds of a look at the store.
const (
	looks      = 20                     // for the latency
	looksEnd   = 2 * time.Second        // after which one that came back was the last of them
	fewLooks   = 5                      // are enough where
	farAway    = 100 * time.Millisecond // is what each takes
	listingEnd = 3 * time.Second
	examEnd    = 15 * time.Second
)

// Prefix begins the names that are the doctor's own.
const Prefix = "interlock-doctor-"

// A Store is what is looked at, and how its client goes about it.
type Store struct {
	Driver   driver.Driver
	Clock    *clock.Clock
	Patience time.Duration // for one answer
	Kept     time.Duration // for which the store keeps a session of the client's TTL; 0 where that is not known
	Usual    time.Duration // the TTL that it is usual to have; 0 where the client's was chosen
}

// Examine makes all checks, until one shows that the store does not answer: that is the error.
// Where the driver's own checks are answered and say that no lock can be had, as of a server that
// has become a replica, that is why the others are not. With e.Write it rehearses, too. What is the
// same on several servers is folded into one finding.
func (s *Store) Examine(ctx context.Context, e driver.Exam, rehearse func(context.Context, driver.Exam) (driver.Finding, error)) ([]driver.Finding, error) {
	var found []driver.Finding
	err := s.examine(ctx, e, rehearse, func(f ...driver.Finding) { found = append(found, f...) })
	return fold(found), err
}

func (s *Store) examine(ctx context.Context, e driver.Exam, rehearse func(context.Context, driver.Exam) (driver.Finding, error), found func(...driver.Finding)) error {
	latency, unmeasured := s.measure(ctx, e)
	failed := unmeasured
	if unmeasured == nil {
		found(latency, s.lifetime(e))
		names, unlisted := s.listing(ctx)
		if failed = unlisted; unlisted == nil {
			found(names)
		}
	}
	own, err := s.examined(ctx, e)
	if found(own...); err != nil || failed != nil {
		if err == nil && slices.ContainsFunc(own, func(f driver.Finding) bool { return f.Level == driver.LevelBad }) {
			found(driver.Finding{Title: "names", Level: driver.LevelSkip, Seen: failed.Error()})
			return nil
		}
		return cmp.Or(failed, err)
	}
	if !e.Write {
		return nil
	}
	f, err := rehearse(ctx, e)
	if err == nil {
		found(f)
	}
	return err
}

// measure looks at a name that nobody has, time after time. What it takes is what a renewal takes:
// a request and its answer. More than half of the time between two renewals, time after time,
// leaves no second try; more than the grace once is a warning.
func (s *Store) measure(ctx context.Context, e driver.Exam) (f driver.Finding, err error) {
	f = driver.Finding{Code: "L6", Title: "latency"}
	looked, ok := s.Driver.(driver.Inspector)
	if !ok {
		f.Level, f.Seen = driver.LevelSkip, "the store cannot be looked into"
		return f, nil
	}
	var took []time.Duration
	began := s.Clock.Now()
	for len(took) < looks && s.Clock.Since(began) < looksEnd {
		if n := len(took); n >= fewLooks && s.Clock.Since(began) >= time.Duration(n)*farAway {
			break
		}
		bounded, cancel := context.WithTimeout(ctx, s.Patience)
		asked := s.Clock.Now()
		_, err := looked.Line(bounded, Prefix+driver.NewID())
		took = append(took, s.Clock.Since(asked))
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
	f.Seen = fmt.Sprintf("of %d answers half took up to %v, and the slowest %v; the TTL is %v, and a grace %v of it", len(took), Short(middle), Short(worst), e.TTL, e.Grace)
	const mend = "a longer TTL (Options.TTL, --ttl); a store that is nearer, or has less to do beside locks"
	switch {
	case middle > (e.TTL-e.Grace)/6:
		f.Level, f.Why, f.Mend = driver.LevelBad, "a renewal that is late by one try is too late: holders lose their locks", mend
	case worst > e.Grace:
		f.Level, f.Why, f.Mend = driver.LevelWarn, "some answers take longer than a grace: a few of them in a row and a holder loses its lock", mend
	}
	return f, nil
}

// Short is a time with three digits.
func Short(d time.Duration) time.Duration {
	for unit := time.Nanosecond; unit <= time.Second; unit *= 10 {
		if d < 1000*unit {
			return d / unit * unit
		}
	}
	return d / time.Second * time.Second
}

// lifetime says what becomes of the TTL.
func (s *Store) lifetime(e driver.Exam) driver.Finding {
	f := driver.Finding{Code: "A10", Title: "ttl"}
	f.Seen = fmt.Sprintf("%v, which this store keeps", e.TTL)
	if s.Kept != 0 {
		f.Seen = fmt.Sprintf("%v, for which the store gave %v", e.TTL, s.Kept)
	}
	if s.Usual != 0 && e.TTL != s.Usual {
		f.Level = driver.LevelWarn
		f.Seen = fmt.Sprintf("%v: the usual %v is not among what this store keeps", e.TTL, s.Usual)
		f.Why = "who holds must renew that much more often, or a dead holder is waited for that much longer"
		f.Mend = "choose a TTL by Options.TTL or --ttl, or the store's own bounds"
	}
	return f
}

// listing reads the names that somebody holds or waits for.
func (s *Store) listing(ctx context.Context) (f driver.Finding, err error) {
	f = driver.Finding{Title: "names"}
	looked, ok := s.Driver.(driver.Inspector)
	if !ok {
		f.Level, f.Seen = driver.LevelSkip, "the store cannot be looked into"
		return f, nil
	}
	bounded, cancel := context.WithTimeout(ctx, listingEnd)
	defer cancel()
	lines, err := looked.Lines(bounded, "")
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
func (s *Store) examined(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	none := []driver.Finding{{Title: "checks", Level: driver.LevelSkip, Seen: "this store's driver brings no checks of its own"}}
	x, ok := s.Driver.(driver.Examiner)
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
