package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// sample is what one master shows of a name.
type sample struct {
	value, kind string
	pttl        time.Duration
	counter     int64
	now         time.Time
	waits       []waiter
}

// granted is when the order was made that brought a claim its token: a counter is the time in µs of
// the client that proposed it, rounded up to its stride. The grant is as much later as the wire
// held the order back. One that is ahead of the master's clock, since a clock is wrong or many drew
// within a moment, does not say.
func granted(counter int64, now time.Time) time.Time {
	at := time.UnixMicro(counter - stride).Truncate(time.Millisecond)
	if at.After(now) {
		return time.Time{}
	}
	return at
}

// waiter is a claim in one master's line.
type waiter struct {
	id     string
	ticket int64
	record record
}

// entry is a claim as all masters together show it, with what people must not see.
type entry struct {
	driver.Holder
	id, channel string
	ticket      int64
	masters     uint64  // which show it
	counters    []int64 // of the masters that it has
	until       []time.Time
	now         time.Time // the latest of the masters that it has
	unsure      bool      // with those that have not answered it would be held
}

// Line implements driver.Inspector. A claim is shown as held if a majority of the masters says so,
// and not at all if it can stand on a minority only: it is leaving, or too late.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	if err := redisstore.CheckName("redlock", name); err != nil {
		return driver.Line{Name: name}, err
	}
	entries, fence, err := d.view(ctx, name)
	line := driver.Line{Name: name, Fence: fence}
	for _, s := range entries {
		if s.Foreign || bits.OnesCount64(s.masters) >= d.quorum {
			line.Claims = append(line.Claims, s.Holder)
		}
	}
	return line, err
}

// view looks at a name on all masters. What those that do not answer would show is unknown: they
// count for every claim. Where they decide whether a claim is held, they are waited for, also if
// they are late.
func (d *Driver) view(ctx context.Context, name string) ([]*entry, uint64, error) {
	samples := make([]sample, len(d.nodes))
	f, err := d.everywhere(ctx, func(n *node) (redisconn.Call, bool) {
		return redisconn.Call{Script: lookScript, Keys: keysOf(name).all()[:4]}, true
	}, func(n *node, v any) error {
		g, err := parseSample(v)
		samples[n.i] = g
		return err
	}, func(missing int) bool {
		has := map[string]int{}
		for _, g := range samples {
			if id := holderID(g.value); id != "" {
				has[id]++
			}
		}
		for _, n := range has {
			if n < d.quorum && n+missing >= d.quorum {
				return true
			}
		}
		return false
	})
	if err == nil && f.answered() < d.quorum {
		if err = f.refusing(d.shared); err == nil {
			err = f.unavailable(d.shared)
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("redlock: look at %q: %w", name, err)
	}
	entries, fence := d.merge(samples)
	missing := f.asked &^ f.yes
	for _, s := range entries {
		s.masters |= missing
		s.unsure = !s.Held && len(s.counters) > 0 && len(s.counters)+bits.OnesCount64(missing) >= d.quorum
	}
	return entries, fence, nil
}

func parseSample(v any) (g sample, err error) {
	f, _ := v.([]any)
	if len(f) < 5 || len(f)%3 != 2 {
		return g, errors.New("redlock: the server answered something else than a line")
	}
	text := func(i int) string { t, _ := f[i].(string); return t }
	pttl, _ := f[2].(int64)
	ms, _ := f[4].(int64)
	g = sample{value: text(0), kind: text(1), pttl: time.Duration(pttl) * time.Millisecond, now: time.UnixMilli(ms)}
	g.counter, _ = strconv.ParseInt(text(3), 10, 64)
	g.counter -= g.counter % 2
	if g.kind != "string" && g.kind != "none" {
		g.value = "\x00" + g.kind // somebody's data
	}
	for i := 5; i < len(f); i += 3 {
		p := waiter{id: text(i)}
		p.ticket, _ = strconv.ParseInt(text(i+1), 10, 64)
		var ok bool
		if p.record, ok = parseRecord(text(i + 2)); ok && !p.record.stop.Before(g.now) {
			g.waits = append(g.waits, p)
		}
	}
	return g, nil
}

// merge makes one line of what the masters show: first who holds a majority, then another program
// that stands in the way, then the others by ticket.
func (d *Driver) merge(samples []sample) (entries []*entry, fence uint64) {
	byID, said := map[string]*entry{}, &redisstore.Reader{}
	at := func(id string, h driver.Holder) *entry {
		s := byID[id]
		if s == nil {
			s = &entry{Holder: h, id: id}
			byID[id] = s
			entries = append(entries, s)
		}
		return s
	}
	for i, g := range samples {
		fence = max(fence, uint64(g.counter)) //nolint:gosec // a counter of ours
		if h := holderOf(g.value, said); h != nil {
			id := holderID(g.value)
			if id == "" {
				id = "\x00" + g.value
				h.Note = note(g)
			}
			s := at(id, *h)
			s.masters |= 1 << i
			s.Broken = s.Broken || h.Broken
			s.counters = append(s.counters, g.counter)
			if s.now.Before(g.now) {
				s.now = g.now
			}
			if g.pttl >= 0 {
				s.until = append(s.until, g.now.Add(g.pttl))
			}
			if !h.Foreign {
				s.ticket, _ = strconv.ParseInt(g.value[headLen+1:fullLen-1], 10, 64)
				s.channel, _ = afterPlace(g.value)
			}
		}
		for _, p := range g.waits {
			h := driver.Holder{PublicID: driver.PublicID(p.id), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Since: p.record.since}
			said.Describe(&h, p.record.info)
			s := at(p.id, h)
			s.masters |= 1 << i
			s.ticket, s.channel = p.ticket, p.record.channel
			if s.Since.IsZero() || p.record.since.Before(s.Since) { // it came when the first of them heard of it
				s.Since = p.record.since
			}
		}
	}
	for _, s := range entries {
		s.decide(d.quorum)
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ticket, b.ticket), cmp.Compare(a.id, b.id))
	})
	return entries, fence
}

// decide finds out whether a claim is held, and until when and with which token, as a majority has
// it.
func (s *entry) decide(quorum int) {
	s.Held = len(s.counters) >= quorum
	slices.SortFunc(s.counters, func(a, b int64) int { return cmp.Compare(b, a) })
	slices.SortFunc(s.until, func(a, b time.Time) int { return b.Compare(a) })
	if s.Held && !s.Foreign {
		s.Fence = lowest(s.counters[quorum-1])
		s.Since = granted(s.counters[quorum-1], s.now)
	}
	if s.Held {
		if len(s.until) >= quorum {
			s.Until = s.until[quorum-1]
		}
	}
}

func rank(s *entry) int {
	switch {
	case s.Held:
		return 0
	case s.Foreign:
		return 1
	}
	return 2
}

// note says of a value of another program what is strange about it.
func note(g sample) string {
	switch {
	case g.kind != "string":
		return "a " + g.kind + ", not a lock: it looks like somebody's data"
	case g.pttl < 0:
		return "a value without an expiry time: it looks like somebody's data, not like a lock"
	}
	return ""
}

// abreast is how many names of a list are looked at together, by one request to each master.
const abreast = 32

// Lines implements driver.Inspector. It scans the counters of all names that ever were locked and
// were not pruned, and looks at those where something stands.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	names, err := d.counted(ctx, prefix, laggardWait)
	if err == nil {
		names, err = d.occupied(ctx, names)
	}
	if err != nil {
		return nil, err
	}
	var lines []driver.Line
	var damaged error // one such name is no reason to list no other
	for some := range slices.Chunk(names, abreast) {
		seen, errs := make([]driver.Line, len(some)), make([]error, len(some))
		var all sync.WaitGroup
		for i, name := range some {
			all.Go(func() { seen[i], errs[i] = d.Line(ctx, name) })
		}
		all.Wait()
		for i, line := range seen {
			switch err := errs[i]; {
			case final(err):
				damaged = errors.Join(damaged, err)
			case err != nil:
				return lines, errors.Join(damaged, err)
			case len(line.Claims) > 0:
				lines = append(lines, line)
			}
		}
	}
	return lines, damaged
}

// watchPeriod is how often Watch looks.
const watchPeriod = 100 * time.Millisecond

// Watch implements driver.Watcher: it looks ten times a second and yields what has changed.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}
