package torture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// instant is a time on the observer's clock: CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share. 0
// is never.
type instant int64

func (i instant) add(d time.Duration) instant { return i + instant(d) }
func (i instant) sub(j instant) time.Duration { return time.Duration(i - j) }

// span is a stretch of the observer's time.
type span struct{ from, to instant }

// handle is what one call of Lock came to, as the worker that called it wrote it down. It holds nothing but what had
// been written when its process ended, so after a kill its later fields are empty.
type handle struct {
	life      *life
	name      int
	goroutine int

	asked   instant // read before Lock was called
	granted instant // read after Lock had returned a lease
	valid   instant // read before the last look at the lease that found it valid: it was valid from granted to here
	trust   instant // until when it then was to be, if it was not renewed
	told    instant // read when the lease's context had ended by loss
	why     string  // for what reason
	leaving instant // read before Release was called
	left    instant // read after Release had returned
	since   int64   // when the store granted the claim, by its own clock in µs; 0 where it does not say
	outcome outcome // of Lock
	fence   uint64

	write writing
	read  int64 // the number found
	value int64 // the number written in its place
}

// outcome is how a call of Lock ended.
type outcome uint32

const (
	pending     outcome = iota // still waiting when the process ended
	granted                    // with a lease
	unavailable                // the store had not answered for too long
	over                       // the run ended first
	failed                     // with an error that no fault explains
)

// writing is what became of the read-modify-write under a lease.
type writing uint32

const (
	unwritten    writing = iota // not begun
	doubtful                    // begun, and nobody knows
	acknowledged                // done, the worker was told
	refused                     // the guard said that the token is stale
)

// confirmed reports whether the lease said at least once after Lock had returned that it is valid. One that a process
// got just before it was stopped may be over when it wakes, and then says so at the first look.
func (h *handle) confirmed() bool { return h.granted != 0 && h.valid >= h.granted }

// String names the goroutine for people.
func (h *handle) String() string { return fmt.Sprintf("%v g%d", h.life, h.goroutine) }

// life is one process from its start to its end. A process that is killed and started again is another life of the same
// slot.
type life struct {
	slot, number int
	lastBeat     instant // when the process last said that it runs
	silences     []span  // in which it did not, because it was stopped or had no CPU; in order and apart
	handles      []*handle
	full         bool      // there was no room to write down more
	leavings     *leavings // nil where the process did not end by itself
}

// leavings is what a worker had left when it had closed everything, in the end of its life.
type leavings struct {
	was, left traces
	what      string // its descriptors and goroutines, where they were too many
}

// traces is what a process has that whoever used locks may leave in it.
type traces struct{ goroutines, descriptors int64 }

func (l *life) String() string { return fmt.Sprintf("p%d.%d", l.slot, l.number) }

// ran returns for how much of the time from one instant to another the process ran, as far as it said. A silence is written
// down when it ends, so a process that ended just after it woke left the last one out: its last beat is where that began.
func (l *life) ran(from, to instant) time.Duration {
	to = min(to, l.lastBeat)
	d := max(to.sub(from), 0)
	for _, s := range l.silences {
		d -= max(min(to, s.to).sub(max(from, s.from)), 0)
	}
	return max(d, 0)
}

// woke returns when the process ran again after an instant at which it did not, or that instant.
func (l *life) woke(at instant) instant {
	for _, s := range l.silences {
		if s.from <= at && at < s.to {
			return s.to
		}
	}
	return at
}

// union returns the time that the spans cover together.
func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// fault is something that was done to a process, to its link, or to a server.
type fault struct {
	at   instant
	slot int // or anyServer
	what string
}

// anyServer stands for the servers where a fault names a slot.
const anyServer = -1

// history is all that was written down in one round.
type history struct {
	names  []string
	finals []int64 // the number in the guarded file of each name in the end
	lives  []*life
	faults []fault
	began  instant
	ended  instant
	whole  []instant // when all servers were there again after a fault of one of several that a majority does without
}

// slots is how many workers there were at a time.
func (hs *history) slots() (n int) {
	for _, l := range hs.lives {
		n = max(n, l.slot+1)
	}
	return n
}

// starved reports whether a process that wanted a name at some time between two instants did not run for an eighth of what it
// lived of that time.
func (hs *history) starved(name int, from, to instant) bool {
	return slices.ContainsFunc(hs.lives, func(l *life) bool {
		wants := slices.ContainsFunc(l.handles, func(h *handle) bool {
			return h.name == name && h.asked < to && (h.granted == 0 || h.granted > from)
		})
		lived := min(to, l.lastBeat)
		return wants && l.ran(from, lived) < lived.sub(from)*7/8
	})
}

// granted returns the handles of one name that were granted, in the order in which their workers saw that.
func (hs *history) granted(name int) []*handle {
	var out []*handle
	for _, l := range hs.lives {
		for _, h := range l.handles {
			if h.name == name && h.granted != 0 {
				out = append(out, h)
			}
		}
	}
	slices.SortFunc(out, func(a, b *handle) int { return cmp.Compare(a.granted, b.granted) })
	return out
}

// grants returns when the store granted each lease, on the observer's clock: never too early, and never later than Lock returned it.
//
// How far the store's clock is from the observer's, the grants themselves say: none was seen before it was. So the least that lies
// between the time that the store says and that at which Lock had returned bounds the distance; the rest of it is how long the
// fastest answer took. Where all times are whole milliseconds they are cut off, and up to one is missing.
func (hs *history) grants() func(*handle) instant {
	least, coarse := time.Duration(math.MaxInt64), int64(1)
	for _, l := range hs.lives {
		for _, h := range l.handles {
			if h.since == 0 || h.granted == 0 {
				continue
			}
			least = min(least, h.granted.sub(instant(h.since*1000)))
			if h.since%1000 != 0 {
				coarse = 0
			}
		}
	}
	return func(h *handle) instant {
		if h.since == 0 {
			return h.granted
		}
		return min(h.granted, instant(h.since*1000).add(least).add(time.Duration(coarse)*time.Millisecond))
	}
}

// blame finds the actors of names that cannot be had any more: who got in last, unless it has left again, and else those
// who died while they asked.
func (hs *history) blame(stuck []violation) {
	for i := range stuck {
		v := &stuck[i]
		handles := hs.granted(v.name)
		if len(handles) > 0 && handles[len(handles)-1].left == 0 {
			last := handles[len(handles)-1]
			v.actors = []*handle{last}
			v.what += fmt.Sprintf("; the last to get in was %s, which never left", last)
			continue
		}
		var asked []string
		for _, l := range hs.lives {
			for _, h := range l.handles {
				if h.name == v.name && h.outcome == pending && h.granted == 0 {
					v.actors = append(v.actors, h)
					asked = append(asked, h.String())
				}
			}
		}
		if len(asked) > 0 {
			v.what += "; everybody who got in has left, and these died while they asked: " + strings.Join(asked, ", ")
		}
	}
}

// violation is one case in which a check failed.
type violation struct {
	name   int
	at     instant
	what   string
	actors []*handle // whose processes the story is about
}

// finding is what a check found in a history.
type finding struct {
	cases      int         // that could have failed
	failed     int         // that did
	void       int         // that might have, and say nothing because somebody did not run
	violations []violation // the first of those
}

// maxViolations is how many violations are kept to be told of. Without a lock there are hundreds of thousands.
const maxViolations = 100

// accuse notes a violation. Those of args that are handles are its actors, and shown by their names.
func (f *finding) accuse(name int, at instant, format string, args ...any) {
	f.failed++
	if len(f.violations) == maxViolations {
		return
	}
	v := violation{name: name, at: at}
	for _, a := range args {
		if h, ok := a.(*handle); ok {
			v.actors = append(v.actors, h)
		}
	}
	v.what = fmt.Sprintf(format, args...)
	f.violations = append(f.violations, v)
}
