// Package history is what the workers of a round logged, and what the checks of torture find in it.
// It knows nothing of processes and stores: a history can be made by hand.
package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// Call is what one call of Lock came to, as the worker that called it logged it. It has nothing but
// what had been logged when its process ended, so after a kill its later fields are empty.
type Call struct {
	Life      *Life
	Name      int
	Goroutine int

	Asked   monotonic.Instant // read before Lock was called
	Granted monotonic.Instant // read after Lock had returned a lease
	// Valid was read before the last look at the lease that found it valid: it was valid from
	// Granted to here.
	Valid   monotonic.Instant
	Trust   monotonic.Instant // until when it then was to be, if it was not renewed
	Told    monotonic.Instant // read when the lease's context had ended by loss
	Why     string            // for what reason
	Leaving monotonic.Instant // read before Release was called
	Left    monotonic.Instant // read after Release had returned
	Since   int64             // the grant, by the store's clock in µs; 0 where it does not say
	Outcome Outcome           // of Lock
	Fence   uint64

	Write WriteOutcome
	Read  int64 // the number found
	Value int64 // the number written in its place
}

// Outcome is how a call of Lock ended.
type Outcome uint32

// The outcomes of a call of Lock.
const (
	Pending     Outcome = iota // still waiting when the process ended
	Granted                    // with a lease
	Unavailable                // the store had not answered for too long
	Over                       // the run ended first
	Failed                     // with an error that no fault explains
)

// WriteOutcome is what became of the read-modify-write under a lease.
type WriteOutcome uint32

// The outcomes of a write.
const (
	Unwritten    WriteOutcome = iota // not begun
	Doubtful                         // begun, and whether it was done is not known
	Acknowledged                     // done, the worker was told
	Refused                          // the guard said that the token is stale
)

// confirmed reports whether the lease said at least once after Lock had returned that it is valid.
// One that a process got just before it was stopped may be over when it wakes, and then says so at
// the first look.
func (h *Call) confirmed() bool { return h.Granted != 0 && h.Valid >= h.Granted }

// String names the goroutine for people.
func (h *Call) String() string { return fmt.Sprintf("%v g%d", h.Life, h.Goroutine) }

// Life is one process from its start to its end. A process that is killed and started again is
// another life of the same slot.
type Life struct {
	Slot, Number int
	LastBeat     monotonic.Instant // when the process last said that it runs
	Silences     []monotonic.Span  // when it did not run: stopped or without CPU; in order, apart
	Calls        []*Call
	Full         bool        // there was no room to log more
	Footprints   *Footprints // nil where the process did not end by itself
}

// Footprints is what a worker had before it opened the store, and what was left when it had closed
// everything.
type Footprints struct {
	Was, Left Footprint
	What      string // its descriptors and goroutines, where they were too many
}

// Footprint is how much a process has of what a client of locks may leave behind.
type Footprint struct{ Goroutines, Descriptors int64 }

// Beyond reports whether t is more than there was.
func (t Footprint) Beyond(was Footprint) bool {
	return t.Goroutines > was.Goroutines || t.Descriptors > was.Descriptors
}

func (l *Life) String() string { return fmt.Sprintf("p%d.%d", l.Slot, l.Number) }

// Ran returns for how much of the time from one instant to another the process ran, as far as it
// said. A silence is logged when it ends, so a process that ended just after it woke left the
// last one out: its last beat is where that began.
func (l *Life) Ran(from, to monotonic.Instant) time.Duration {
	to = min(to, l.LastBeat)
	d := max(to.Sub(from), 0)
	for _, s := range l.Silences {
		d -= max(min(to, s.To).Sub(max(from, s.From)), 0)
	}
	return max(d, 0)
}

// woke returns when the process ran again after an instant at which it did not, or that instant.
func (l *Life) woke(at monotonic.Instant) monotonic.Instant {
	for _, s := range l.Silences {
		if s.From <= at && at < s.To {
			return s.To
		}
	}
	return at
}

// Fault is something that was done to a process, to its link, or to a server.
type Fault struct {
	At   monotonic.Instant
	Slot int // or AnyServer
	What string
}

// AnyServer stands for the servers where a fault names a slot.
const AnyServer = -1

// History is all that was logged in one round.
type History struct {
	Names  []string
	Finals []int64 // the number in the guarded file of each name in the end
	Lives  []*Life
	Faults []Fault
	Began  monotonic.Instant
	Ended  monotonic.Instant
	// Healed is when all servers were there again after a fault of one of several that a majority
	// does without.
	Healed []monotonic.Instant
}

// slots is how many workers there were at a time.
func (hs *History) slots() (n int) {
	for _, l := range hs.Lives {
		n = max(n, l.Slot+1)
	}
	return n
}

// starved reports whether a process that wanted a name at some time between two instants did not
// run for an eighth of what it lived of that time.
func (hs *History) starved(name int, from, to monotonic.Instant) bool {
	return slices.ContainsFunc(hs.Lives, func(l *Life) bool {
		wants := slices.ContainsFunc(l.Calls, func(h *Call) bool {
			return h.Name == name && h.Asked < to && (h.Granted == 0 || h.Granted > from)
		})
		lived := min(to, l.LastBeat)
		return wants && l.Ran(from, lived) < lived.Sub(from)*7/8
	})
}

// Granted returns the calls for one name that were granted, in the order in which their workers
// saw that.
func (hs *History) Granted(name int) []*Call {
	var out []*Call
	for _, l := range hs.Lives {
		for _, h := range l.Calls {
			if h.Name == name && h.Granted != 0 {
				out = append(out, h)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Call) int { return cmp.Compare(a.Granted, b.Granted) })
	return out
}

// grants returns when the store granted each lease, on the monotonic clock: never too early, and
// never later than Lock returned it.
//
// The distance between the store's clock and the monotonic one follows from the grants themselves:
// none was seen before it was. So the least difference between the time at which Lock had returned
// and the time that the store says bounds it; the rest is how long the fastest answer took. Where
// all times are whole milliseconds they are cut off, and up to one is missing.
func (hs *History) grants() func(*Call) monotonic.Instant {
	least, coarse := time.Duration(math.MaxInt64), int64(1)
	for _, l := range hs.Lives {
		for _, h := range l.Calls {
			if h.Since == 0 || h.Granted == 0 {
				continue
			}
			least = min(least, h.Granted.Sub(monotonic.Instant(h.Since*1000)))
			if h.Since%1000 != 0 {
				coarse = 0
			}
		}
	}
	return func(h *Call) monotonic.Instant {
		if h.Since == 0 {
			return h.Granted
		}
		return min(h.Granted, monotonic.Instant(h.Since*1000).Add(least).Add(time.Duration(coarse)*time.Millisecond))
	}
}

// Blame finds the calls to blame for names that cannot be had any more: the last that was granted,
// unless it was released, and else those whose processes died while they asked.
func (hs *History) Blame(stuck []Violation) {
	for i := range stuck {
		v := &stuck[i]
		calls := hs.Granted(v.Name)
		if len(calls) > 0 && calls[len(calls)-1].Left == 0 {
			last := calls[len(calls)-1]
			v.Calls = []*Call{last}
			v.What += fmt.Sprintf("; the last to get in was %s, which never left", last)
			continue
		}
		var asked []string
		for _, l := range hs.Lives {
			for _, h := range l.Calls {
				if h.Name == v.Name && h.Outcome == Pending && h.Granted == 0 {
					v.Calls = append(v.Calls, h)
					asked = append(asked, h.String())
				}
			}
		}
		if len(asked) > 0 {
			v.What += "; everybody who got in has left, and these died while they asked: " + strings.Join(asked, ", ")
		}
	}
}

// Violation is one case in which a check failed.
type Violation struct {
	Name  int
	At    monotonic.Instant
	What  string
	Calls []*Call // whose processes the trace is about
}

// Finding is what a check found in a history.
type Finding struct {
	Cases      int         // that could have failed
	Failed     int         // that did
	Void       int         // that might have, and say nothing because a process did not run
	Violations []Violation // the first of those
}

// maxViolations is how many violations are kept to be shown. Without a lock there are hundreds of
// thousands.
const maxViolations = 100

// violated notes a violation. Those of args that are calls are kept with it, and shown by their
// names.
func (f *Finding) violated(name int, at monotonic.Instant, format string, args ...any) {
	f.Failed++
	if len(f.Violations) == maxViolations {
		return
	}
	v := Violation{Name: name, At: at}
	for _, a := range args {
		if h, ok := a.(*Call); ok {
			v.Calls = append(v.Calls, h)
		}
	}
	v.What = fmt.Sprintf(format, args...)
	f.Violations = append(f.Violations, v)
}
