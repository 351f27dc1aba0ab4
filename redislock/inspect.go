package redislock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// sight is a line as the script look read it, with what people must not see.
type sight struct {
	driver.Line
	ids, channels []string // beside Claims
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	if err := redisstore.CheckName("redislock", name); err != nil {
		return driver.Line{Name: name}, err
	}
	s, err := d.look(ctx, name)
	return s.Line, err
}

func (d *Driver) look(ctx context.Context, name string) (s sight, err error) {
	s.Name = name
	err = d.each(ctx, []string{name}, func(seen sight) { s = seen })
	return s, err
}

// each reads names, in no order.
func (d *Driver) each(ctx context.Context, names []string, saw func(sight)) error {
	look := func(names ...string) redisconn.Call {
		call := redisconn.Call{Script: lookScript, Again: redisconn.Idempotent}
		for _, name := range names {
			call.Keys = append(call.Keys, keysOf(name).all()...)
		}
		return call
	}
	var alone []string // are asked for one by one
	var listing redisstore.Reader
	for len(names) > 1 {
		var left []string
		err := d.inGroups(ctx, names, shown, func(names []string) redisconn.Call { return look(names...) }, func(names []string, v any) {
			sights, _ := v.([]any)
			for i, v := range sights[:min(len(sights), len(names))] {
				if s, err := parseSight(names[i], v, &listing); err == nil {
					saw(s)
				} else {
					alone = append(alone, names[i]) // which says what is wrong with it
				}
			}
			if names = names[min(len(sights), len(names)):]; len(sights) > 0 {
				left = append(left, names...)
			} else {
				alone = append(alone, names...) // one of them is damaged, or in a slot that is just moving
			}
		})
		if err != nil {
			return fmt.Errorf("redislock: look at %d names: %w", len(names), err)
		}
		names = left
	}
	alone = append(alone, names...)
	err := redisstore.Each(ctx, d.store.Run, d.store.Timeout, alone, func(name string) redisconn.Call { return look(name) }, func(name string, v any) error {
		sights, _ := v.([]any)
		if len(sights) != 1 {
			sights = []any{nil}
		}
		s, err := parseSight(name, sights[0], &listing)
		if err == nil {
			saw(s)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("redislock: %w", err)
	}
	return nil
}

// Lines implements driver.Inspector. It scans the lines, and the counters of all names that were
// locked within Options.KeepCounters, asks for hundreds of these by one script which of them are
// held, and looks at what stands. Where a master of a Cluster cannot be reached it lists what
// stands at the others, with an error that says so.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	names, _, missing, err := d.liveNames(ctx, prefix)
	if missing != nil {
		missing = fmt.Errorf("redislock: %w", missing)
	}
	if err != nil {
		return nil, errors.Join(missing, fmt.Errorf("redislock: %w", err))
	}
	var lines []driver.Line
	err = d.each(ctx, names, func(s sight) {
		if len(s.Claims) > 0 {
			lines = append(lines, s.Line)
		}
	})
	slices.SortFunc(lines, func(a, b driver.Line) int { return strings.Compare(a.Name, b.Name) })
	return lines, errors.Join(missing, err)
}

// parseSight parses the answer of the script look for a name.
func parseSight(name string, v any, listing *redisstore.Reader) (sight, error) {
	s := sight{Line: driver.Line{Name: name}}
	f, _ := v.([]any)
	if len(f) < 5 || len(f)%2 == 0 {
		return s, errors.New("the server answered something else than a line")
	}
	text := func(i int) string { t, _ := f[i].(string); return t }
	value, kind, counter := text(0), text(1), text(3)
	pttl, _ := f[2].(int64)
	ms, _ := f[4].(int64)
	now := time.UnixMilli(ms)
	var c int64
	if n, err := strconv.ParseInt(counter, 10, 64); err == nil {
		c, s.Fence = n, uint64(n-n%2) //nolint:gosec // a counter of ours
	}
	if kind != "string" && kind != "none" {
		value = "\x00" + kind // other data
	}
	if h, channel := holderAs(value, listing); h != nil && value != cover {
		if pttl >= 0 {
			h.Until = now.Add(time.Duration(pttl) * time.Millisecond)
		}
		if holderID(value) != "" {
			if c > 1 {
				h.Fence = lowest(c - c%2)
			}
			h.Since = granted(c-c%2, now)
		} else if kind != "string" {
			h.Note = "a " + kind + ", not a lock: it looks like somebody's data"
		} else if pttl < 0 {
			h.Note = foreignEndless
		}
		s.add(*h, holderID(value), channel)
	}
	for i := 5; i < len(f); i += 2 {
		r, ok := parseRecord(text(i + 1))
		if !ok {
			return s, redisconn.Classify(redisconn.ParseError("CORRUPT " + keysOf(name).claims + ": want records, as this library writes them"))
		}
		if r.state != "w" && value != cover || !r.stop.IsZero() && r.stop.Before(now) {
			continue // its time is over
		}
		if r.state == "w" {
			r.stop = time.Time{} // until it is shown no more, and not until it goes
		}
		h := driver.Holder{
			PublicID: driver.PublicID(text(i)), Kind: r.kind, Weight: r.weight, Limit: r.limit,
			Held: r.state != "w", Broken: r.state == "b", Since: r.since, Until: r.stop,
		}
		listing.Describe(&h, r.info)
		s.add(h, text(i), r.channel)
	}
	return s, nil
}

// granted is when the claim that is held alone drew its tokens: a counter that was behind the
// server's clock then is its time in µs, rounded up to 64. One that was ahead, since the clock was
// set back or many drew within a moment, does not say, nor does one that is gone.
func granted(counter int64, now time.Time) time.Time {
	at := time.UnixMicro(counter - 64).Truncate(time.Millisecond)
	if counter <= 0 || at.After(now) {
		return time.Time{}
	}
	return at
}

func (s *sight) add(h driver.Holder, id, channel string) {
	s.Claims, s.ids, s.channels = append(s.Claims, h), append(s.ids, id), append(s.channels, channel)
}

// Break implements driver.Inspector. The owner gets a message at once, or half a second after it
// got the name where its process has not listened before. Where its subscription has ended since,
// its next renewal says it.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if err := redisstore.CheckName("redislock", name); err != nil {
		return err
	}
	s, err := d.look(ctx, name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Claims, func(h driver.Holder) bool { return h.PublicID == publicID && h.Fence == fence })
	if i < 0 {
		return fmt.Errorf("redislock: break %q: %w: no claim %s with token %d stands there", name, driver.ErrRefused, publicID, fence)
	}
	k, h := keysOf(name), s.Claims[i]
	if h.Foreign {
		return d.breakForeign(ctx, k, publicID, now)
	}
	var again redisstore.Resent
	tell := redisconn.Call{Script: markScript, Keys: k.all(), Args: []string{s.ids[i], "tell", s.channels[i]}, Again: again.Again}
	calls := []redisconn.Call{d.releaseCall(k, s.ids[i]), tell}
	if h.Held && !now {
		tell.Args[1] = "mark"
		calls = []redisconn.Call{tell}
	}
	replies, err := redisstore.Together(ctx, d.store.Run, d.store.Timeout, calls)
	for _, reply := range replies {
		err = errors.Join(err, reply.Err)
	}
	if err != nil {
		return fmt.Errorf("redislock: break %q: %w", name, err)
	}
	if h.Held && !now && replies[0].Value != int64(1) {
		if again { // it was perhaps marked before it left
			return fmt.Errorf("redislock: break %q: %w", name, redisstore.ErrTwice)
		}
		return fmt.Errorf("redislock: break %q: %w: the claim has just left", name, driver.ErrRefused)
	}
	return nil
}

// breakForeign deletes another program's lock, if it still has the value that was seen.
func (d *Driver) breakForeign(ctx context.Context, k keys, publicID string, now bool) error {
	if !now {
		return fmt.Errorf("redislock: break %q: %w: another program holds it and reads no marks", k.name, driver.ErrOnlyNow)
	}
	v, err := d.store.Conn.Do(sessions.Within(ctx, d.store.Timeout), redisconn.Command{Words: []string{"GET", k.name}, First: 1, Keys: 1})
	if err != nil {
		return fmt.Errorf("redislock: break %q: %w", k.name, redisconn.Classify(err))
	}
	value, _ := v.(string)
	if holderID(value) != "" || driver.PublicID(value) != publicID {
		return fmt.Errorf("redislock: break %q: %w: another holds it now", k.name, driver.ErrRefused)
	}
	// Not sent again: the other program's next lock may have the same value.
	v, err = d.store.Run.Run(sessions.Within(ctx, d.store.Timeout), redisconn.Call{Script: dropScript, Keys: []string{k.name}, Args: []string{value}})
	if err != nil {
		return fmt.Errorf("redislock: break %q: %w", k.name, err)
	}
	if v != int64(1) {
		return fmt.Errorf("redislock: break %q: %w: another holds it now", k.name, driver.ErrRefused)
	}
	return nil
}

// watchPeriod is how often Watch reads the lines.
const watchPeriod = 100 * time.Millisecond

// Watch implements driver.Watcher: it reads the lines ten times a second and yields what has
// changed.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
