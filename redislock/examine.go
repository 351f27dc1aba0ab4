package redislock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

const (
	examining = 3 * time.Second    // of names: if there are more than can be read by then, the finding says so
	pruneIdle = 7 * 24 * time.Hour // after which interlock prune removes a counter by default
	manyFree  = 10_000             // counters of free names: each list of holders reads them
	farEnd    = time.Hour          // of a claim, and more than ten times the TTL: no lock has so long
)

// Examine implements driver.Examiner.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	found, err := redisstore.Examine(ctx, d.store.Conn, redisstore.Examination{
		Exam: e, Needs: needed(d.options), Key: "interlock-doctor-" + driver.NewID(), Channel: channels + driver.NewID(), Common: true,
		Tokens: "tokens go on growing",
	})
	if err != nil || slices.ContainsFunc(found, func(f driver.Finding) bool {
		return f.Level == driver.LevelBad && (f.Title == "role" || f.Title == "answers")
	}) {
		return found, err // a replica has no names, and a server that is down none that can be read
	}
	names, err := d.examineNames(ctx, e)
	return append(found, names...), err
}

// examineNames checks for claims that last too long, and for keys left of names that are not
// locked.
func (d *Driver) examineNames(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	ends, left := driver.Finding{Code: "R4", Title: "ends"}, driver.Finding{Title: "leftovers"}
	bounded, cancel := context.WithTimeout(ctx, examining)
	defer cancel()
	err := d.examineEnds(bounded, e, &ends, &left)
	switch {
	case err == nil:
	case ctx.Err() == nil && bounded.Err() != nil:
		ends.Level, ends.Seen = driver.LevelSkip, fmt.Sprintf("there are too many names to be read within %v", examining)
		left.Level, left.Seen = ends.Level, ends.Seen
	case redisconn.Is(err, "NOPERM"), redisconn.Is(err, "CORRUPT"), redisconn.Is(err, "WRONGTYPE"): // which the list of names reports
		ends.Level, ends.Seen = driver.LevelSkip, fmt.Sprintf("not all names can be looked at: %v", err)
		left.Level, left.Seen = ends.Level, ends.Seen
	default:
		return nil, redisconn.Unchanged(err)
	}
	return []driver.Finding{ends, left}, nil
}

func (d *Driver) examineEnds(ctx context.Context, e driver.Exam, ends, left *driver.Finding) error {
	live, names, missing, err := d.liveNames(ctx, "")
	if err = cmp.Or(missing, err); err != nil {
		return err
	}
	now, err := redisstore.Now(ctx, func(ctx context.Context, words ...string) (any, error) {
		return d.store.Conn.Do(ctx, redisconn.Command{Words: words})
	})
	if err != nil {
		return err
	}
	stands := make(map[string]bool, len(live))
	for _, name := range live {
		stands[name] = true
	}
	far, which, never := time.Duration(0), "", ""
	err = d.each(ctx, live, func(s sight) {
		for _, h := range s.Claims {
			if h.Held && !h.Foreign && h.Until.IsZero() {
				never = s.Name
			}
			if rest := h.Until.Sub(now); !h.Until.IsZero() && rest > far {
				far, which = rest, s.Name
			}
		}
	})
	if err != nil {
		return err
	}
	ends.Seen = "every claim goes in time unless it is renewed"
	if never != "" {
		ends.Level = driver.LevelWarn
		ends.Seen = fmt.Sprintf("the lock %q has no time to live, as after PERSIST", never)
		ends.Why = "its holder's next renewal gives it one; if that is dead nobody gets the lock again"
		ends.Mend = "interlock break --now " + strconv.Quote(never) + " if its holder is dead"
	} else if far > max(farEnd, 10*e.TTL) {
		ends.Level = driver.LevelWarn
		ends.Seen = fmt.Sprintf("the lock %q goes in %v, unless it is renewed", which, far.Round(time.Second))
		ends.Why = "the server's clock was set back while it was held, or its TTL is that long: if its holder dies others wait as long"
		ends.Mend = "have NTP set the clock slowly; interlock break " + strconv.Quote(which) + " if its holder is dead"
	}
	return d.examineLeft(ctx, names, stands, now, left)
}

// examineLeft counts what interlock prune would remove.
func (d *Driver) examineLeft(ctx context.Context, names []string, stands map[string]bool, now time.Time, left *driver.Finding) error {
	free, stale := 0, 0
	before := now.Add(-pruneIdle).UnixMicro()
	for len(names) > 0 {
		var cmds []redisconn.Command
		n := min(len(names), asked)
		for _, name := range names[:n] {
			if !stands[name] {
				cmds = append(cmds, redisconn.Command{Words: []string{"GET", keysOf(name).counter}, First: 1, Keys: 1})
			}
		}
		names = names[n:]
		free += len(cmds)
		if len(cmds) == 0 {
			continue
		}
		for _, reply := range d.store.Conn.DoAll(ctx, cmds) {
			if reply.Err != nil {
				return reply.Err
			}
			text, _ := reply.Value.(string)
			if c, err := strconv.ParseInt(text, 10, 64); err == nil && c < before {
				stale++
			}
		}
	}
	left.Seen = fmt.Sprintf("%d names that nobody locks have a counter; interlock prune would remove %d", free, stale)
	if stale >= manyFree {
		left.Level = driver.LevelWarn
		left.Why = "each list of who holds goes through them, and takes the time of all"
		left.Mend = "interlock prune, now and then; Options.KeepCounters says how long new ones stay"
	}
	return nil
}
