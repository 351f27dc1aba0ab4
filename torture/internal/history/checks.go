package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// The titles of the checks.
const (
	TitleTokens  = "tokens are unique and grow"
	TitleData    = "no acknowledged update is lost"
	TitleOverlap = "no two leases are valid at once"
	TitleNotice  = "who loses is told before the next gets in"
	TitlePermits = "no more permits are valid at once than there are"
	TitleAfter   = "everything can be had afterwards, nothing is left"
	TitleTidy    = "what is closed is gone"
	TitleSoon    = "a name that is free is granted soon"
)

// CheckTokens is V1: the tokens of one name are unique and grow in the order of grants.
//
// When exactly the store granted is not known, only that it was between asked and granted. Two
// things are certain all the same. What was granted before somebody asked has the smaller token.
// And of two leases that were both valid after their Lock had returned, the one that was seen
// earlier was granted earlier: had it been the other way round, both would have been held at that
// moment. A lease that was never seen valid may have been overtaken while its process was stopped
// in Lock's last instruction, so it takes part in the first comparison only.
//
// Where two may be held at once, because the servers promise no better, the second comparison says
// nothing, and in the first a lease that was passed on inside its process was asked for when the
// claim was that it is a part of: the store granted them together, and knows nothing of the
// passing.
func CheckTokens(hs *History, exclusive bool) Finding {
	var f Finding
	for name := range hs.Names {
		handles := hs.Granted(name)
		highest := make([]*Call, len(handles)) // among the first i+1
		seen := map[uint64]*Call{}
		asked := func(h *Call) monotonic.Instant { return h.Asked }
		if !exclusive {
			asked = claimed(handles)
		}
		var valid *Call // the one with the highest token of those that were seen valid
		for i, h := range handles {
			f.Cases++
			highest[i] = h
			if i > 0 && highest[i-1].Fence > h.Fence {
				highest[i] = highest[i-1]
			}
			if h.Fence == 0 {
				f.violated(name, h.Granted, "%s was granted the name without a token", h)
				continue
			}
			if other := seen[h.Fence]; other != nil {
				f.violated(name, h.Granted, "token %d was given to %s and to %s", h.Fence, other, h)
				continue
			}
			seen[h.Fence] = h
			before, _ := slices.BinarySearchFunc(handles, asked(h), func(h *Call, t monotonic.Instant) int { return cmp.Compare(h.Granted, t) })
			if before > 0 && highest[before-1].Fence > h.Fence {
				f.violated(name, h.Granted, "%s has token %d, and asked after %s had been granted %d", h, h.Fence, highest[before-1], highest[before-1].Fence)
				continue
			}
			if !exclusive || !h.confirmed() {
				continue
			}
			if valid != nil && valid.Fence > h.Fence {
				f.violated(name, h.Granted, "%s has token %d, and was granted after %s with %d", h, h.Fence, valid, valid.Fence)
				continue
			}
			valid = h
		}
	}
	return f
}

// claimed returns when the claim was asked for that a lease is a part of: leases of one life whose
// tokens one grant of the store has room for.
func claimed(handles []*Call) func(*Call) monotonic.Instant {
	sorted := slices.SortedFunc(slices.Values(handles), func(a, b *Call) int { return cmp.Compare(a.Fence, b.Fence) })
	firsts := map[*Life]*Call{}
	asked := map[*Call]monotonic.Instant{}
	for _, h := range sorted {
		if first := firsts[h.Life]; first == nil || h.Fence-first.Fence >= driver.Stride {
			firsts[h.Life] = h
		}
		// where tokens are not in order the first may be the later one
		asked[h] = min(firsts[h.Life].Asked, h.Asked)
	}
	return func(h *Call) monotonic.Instant { return asked[h] }
}

// CheckData is V2: no acknowledged read-modify-write is lost.
//
// Everybody adds 1 to a number, so each value between 0 and the final one must have been written
// once: by somebody who was told that it is done, or by somebody who never knew. Two acknowledged
// writes of one value, an acknowledged value above the final one, or a value that nobody wrote is a
// lost or an invented update. With tokens, the accepted ones never fall.
func CheckData(hs *History, fenced bool) Finding {
	var f Finding
	for name := range hs.Names {
		byValue := map[int64]*Call{}
		doubts := map[int64]bool{}
		for _, h := range hs.Granted(name) {
			switch h.Write {
			case Doubtful:
				doubts[h.Value] = true
			case Acknowledged:
				f.Cases++
				if other := byValue[h.Value]; other != nil {
					f.violated(name, h.Leaving, "%s and %s both read %d and wrote %d: an update is lost", other, h, h.Read, h.Value)
					continue
				}
				byValue[h.Value] = h
				if h.Value > hs.Finals[name] {
					f.violated(name, h.Leaving, "%s was told that %d is written, and in the end there was %d", h, h.Value, hs.Finals[name])
				}
			case Unwritten, Refused:
			}
		}
		var last *Call
		for v := int64(1); v <= hs.Finals[name]; v++ {
			h := byValue[v]
			if h == nil {
				if !doubts[v] {
					f.violated(name, 0, "the number passed %d, which nobody wrote", v)
				}
				continue
			}
			if fenced && last != nil && h.Fence < last.Fence {
				f.violated(name, h.Leaving, "the guard took %d with token %d after %d with token %d", h.Value, h.Fence, last.Value, last.Fence)
			}
			last = h
		}
	}
	return f
}

// CheckOverlap is V3: there is no instant at which two leases of one name are valid, or more than
// there are permits.
//
// A lease is valid for certain from the clock's reading after Lock returned to the reading before
// the last look that found it so, because a lease that has ended never becomes valid again. What a
// process that is stopped would say does not count: it says nothing, and when it wakes its first
// look asks the clock.
func CheckOverlap(hs *History, permits int) Finding {
	var f Finding
	for name := range hs.Names {
		var valid []*Call // of those before, the ones that may still be
		for _, h := range hs.Granted(name) {
			if !h.confirmed() {
				continue
			}
			f.Cases++
			valid = slices.DeleteFunc(valid, func(v *Call) bool { return v.Valid <= h.Granted })
			if n := len(valid); n >= permits && permits == 1 {
				longest := slices.MaxFunc(valid, func(a, b *Call) int { return cmp.Compare(a.Valid, b.Valid) })
				f.violated(name, h.Granted, "%s was granted the name while the lease of %s was valid, which it was for another %v",
					h, longest, min(longest.Valid, h.Valid).Sub(h.Granted))
			} else if n >= permits {
				args := []any{h, permits}
				for _, v := range valid {
					args = append(args, v)
				}
				f.violated(name, h.Granted, "%s was granted one of %d permits while these were valid:"+strings.Repeat(" %s", n), args...)
			}
			valid = append(valid, h)
		}
	}
	return f
}

// CheckTidy is the half of V7 that is about workers: one that has closed everything has no more
// goroutines and descriptors, connections among them, than before it opened the store.
func CheckTidy(hs *History) Finding {
	var f Finding
	for _, l := range hs.Lives {
		if l.Footprints == nil {
			continue
		}
		f.Cases++
		if was, left := l.Footprints.Was, l.Footprints.Left; left.Beyond(was) {
			f.violated(0, l.LastBeat, "%v has closed everything, and has %d goroutines and %d descriptors; before it opened the store there were %d and %d:\n%s",
				l, left.Goroutines, left.Descriptors, was.Goroutines, was.Descriptors, l.Footprints.What)
		}
	}
	return f
}

// CheckSoon is V8: a name that is free, and wanted, is granted before long. It is free when
// everybody who got in has released, and what became of those who did not is not known. What counts
// is the time in which the waiting process ran, and a wait says nothing in which another process
// that wanted the name was starved: it may have been its turn.
func CheckSoon(hs *History, within time.Duration) Finding {
	var f Finding
	for name := range hs.Names {
		free := hs.Began
		for _, h := range hs.Granted(name) {
			f.Cases++
			if waited := h.Life.Ran(max(free, h.Asked), h.Granted); waited > within && hs.starved(name, max(free, h.Asked), h.Granted) {
				f.Cases, f.Void = f.Cases-1, f.Void+1
			} else if waited > within {
				f.violated(name, h.Granted, "%s was granted the name after it had been free and wanted for %v", h, waited)
			}
			if free = max(free, h.Left); h.Left == 0 {
				free = 0
				break
			}
		}
		if free == 0 {
			continue
		}
		var longest *Call // that waited in vain
		var waited time.Duration
		for _, l := range hs.Lives {
			for _, h := range l.Calls {
				if w := l.Ran(max(free, h.Asked), min(hs.Ended, l.LastBeat)); h.Name == name && h.Granted == 0 && w > waited {
					longest, waited = h, w
				}
			}
		}
		if longest == nil {
			continue
		}
		if from, to := max(free, longest.Asked), min(hs.Ended, longest.Life.LastBeat); waited > within && hs.starved(name, from, to) {
			f.Void++
			continue
		}
		f.Cases++
		if waited > within {
			f.violated(name, max(free, longest.Asked), "%s was never granted the name, which had been free and wanted for %v", longest, waited)
		}
	}
	return f
}

// CheckGoesOn is V6 while the round goes on: whatever was done to masters, somebody gets in soon
// after. It says nothing about times in which fewer than half of the workers ran, nor about a
// machine on which nobody got in at any time of the round: that is not enough to judge by, and if
// no round has more, the run fails for that.
func CheckGoesOn(hs *History, within time.Duration) (f Finding, slowest time.Duration) {
	some := slices.ContainsFunc(hs.Lives, func(l *Life) bool {
		return slices.ContainsFunc(l.Calls, func(h *Call) bool { return h.Granted != 0 })
	})
	for _, at := range hs.Healed {
		running := 0
		for _, l := range hs.Lives {
			if l.LastBeat >= at.Add(within) && l.Ran(at, at.Add(within)) >= within-within/8 {
				running++
			}
		}
		if at.Add(within) > hs.Ended {
			continue
		}
		if !some || 2*running < hs.slots() {
			f.Void++
			continue
		}
		f.Cases++
		first := monotonic.Instant(math.MaxInt64)
		for _, l := range hs.Lives {
			for _, h := range l.Calls {
				if h.Granted > at {
					first = min(first, h.Granted)
				}
			}
		}
		if first > at.Add(within) {
			f.violated(0, at, "all masters were there again, and for %v nobody got in", within)
			continue
		}
		slowest = max(slowest, first.Sub(at))
	}
	return f, slowest
}

// wakeUp is how long a process may run, after it slept through the end of its lease, until the
// context has ended.
const wakeUp = 10 * time.Millisecond

// NoticeFinding is what checkNotice found besides violations.
type NoticeFinding struct {
	Finding
	Margins []time.Duration // from told to the next grant, where the holder's process ran
	Naps    []time.Duration // that a process ran after it woke until the context had ended
	Told    int             // by the store when it granted
}

// CheckNotice is V4: whoever loses a lease is told at or before the moment at which the next gets
// in.
//
// Told is when the lease's context had ended; the next is the next lease of that name, from when
// the store granted it, or from when Lock had returned it where the store does not say. Goroutines
// of every process say each 2 ms that they run. A lease ends a grace before the next gets in, or
// earlier; a process that did not run for most of that grace, because it was stopped or starved,
// could not be told, and then what counts is how long it ran afterwards. One that was starved
// afterwards, too, says nothing. A holder that ran on and was never told is as late as can be.
func CheckNotice(hs *History, grace time.Duration) NoticeFinding {
	var n NoticeFinding
	at := hs.grants()
	for name := range hs.Names {
		handles := slices.DeleteFunc(hs.Granted(name), func(h *Call) bool { return !h.confirmed() })
		for i := 0; i+1 < len(handles); i++ {
			h, next := handles[i], handles[i+1]
			if h.Leaving != 0 && (h.Told == 0 || h.Leaving < h.Told) {
				continue // released, as far as the holder knows
			}
			granted := next.Granted
			// A lease that was passed on in a process is of a grant before.
			if h.Life != next.Life {
				granted = at(next)
			}
			told, verb := h.Told, "was"
			if told == 0 {
				if h.Life.LastBeat <= next.Granted {
					continue // its process ended first
				}
				told, verb = h.Life.LastBeat, "was never"
			}
			n.Cases++
			if granted < next.Granted {
				n.Told++
			}
			if told <= granted {
				n.Margins = append(n.Margins, granted.Sub(told))
				continue
			}
			ran := h.Life.Ran(granted, told)
			if h.Life.Ran(granted.Add(-grace), granted) < grace/2 {
				if ran <= wakeUp {
					n.Naps = append(n.Naps, ran)
					continue
				}
				if woke := h.Life.woke(granted); ran < told.Sub(woke)*7/8 {
					n.Cases, n.Void = n.Cases-1, n.Void+1
					continue
				}
			}
			n.violated(name, granted, "%v %s told of its loss by %v after %v had been granted the name, and ran for %v of that",
				h, verb, told.Sub(granted), next, ran)
		}
	}
	return n
}

// Jain is the fairness index of shares: 1 when all are equal, 1/n when one has everything.
func Jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
