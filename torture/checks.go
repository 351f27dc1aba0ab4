package torture

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The titles of the checks.
const (
	titleTokens  = "tokens are unique and grow"
	titleData    = "no acknowledged update is lost"
	titleOverlap = "no two leases are valid at once"
	titleNotice  = "who loses is told before the next gets in"
	titlePermits = "no more permits are valid at once than there are"
	titleAfter   = "everything can be had afterwards, nothing is left"
	titleTidy    = "what is closed is gone"
	titleSoon    = "a name that is free is granted soon"
)

// checkTokens is V1: the tokens of one name are unique and grow in the order of grants.
//
// When exactly the store granted is not known, only that it was between asked and granted. Two things are certain all
// the same. What was granted before somebody asked has the smaller token. And of two leases that were both valid after
// their Lock had returned, the one that was seen earlier was granted earlier: had it been the other way round, both
// would have been held at that moment. A lease that was never seen valid may have been overtaken while its process was
// stopped in Lock's last instruction, so it takes part in the first comparison only.
//
// Where two may be held at once, because the servers promise no better, the second comparison says nothing, and in the
// first a lease that was passed on inside its process was asked for when the claim was that it is a part of: the store
// granted them together, and knows nothing of the passing.
func checkTokens(hs *history, exclusive bool) finding {
	var f finding
	for name := range hs.names {
		handles := hs.granted(name)
		highest := make([]*handle, len(handles)) // among the first i+1
		seen := map[uint64]*handle{}
		asked := func(h *handle) instant { return h.asked }
		if !exclusive {
			asked = claimed(handles)
		}
		var valid *handle // the one with the highest token of those that were seen valid
		for i, h := range handles {
			f.cases++
			highest[i] = h
			if i > 0 && highest[i-1].fence > h.fence {
				highest[i] = highest[i-1]
			}
			if h.fence == 0 {
				f.accuse(name, h.granted, "%s was granted the name without a token", h)
				continue
			}
			if other := seen[h.fence]; other != nil {
				f.accuse(name, h.granted, "token %d was given to %s and to %s", h.fence, other, h)
				continue
			}
			seen[h.fence] = h
			before, _ := slices.BinarySearchFunc(handles, asked(h), func(h *handle, t instant) int { return cmp.Compare(h.granted, t) })
			if before > 0 && highest[before-1].fence > h.fence {
				f.accuse(name, h.granted, "%s has token %d, and asked after %s had been granted %d", h, h.fence, highest[before-1], highest[before-1].fence)
				continue
			}
			if !exclusive || !h.confirmed() {
				continue
			}
			if valid != nil && valid.fence > h.fence {
				f.accuse(name, h.granted, "%s has token %d, and was granted after %s with %d", h, h.fence, valid, valid.fence)
				continue
			}
			valid = h
		}
	}
	return f
}

// claimed returns when the claim was asked for that a lease is a part of: leases of one life whose tokens one grant of
// the store has room for.
func claimed(handles []*handle) func(*handle) instant {
	sorted := slices.SortedFunc(slices.Values(handles), func(a, b *handle) int { return cmp.Compare(a.fence, b.fence) })
	firsts := map[*life]*handle{}
	asked := map[*handle]instant{}
	for _, h := range sorted {
		if first := firsts[h.life]; first == nil || h.fence-first.fence >= driver.Stride {
			firsts[h.life] = h
		}
		asked[h] = min(firsts[h.life].asked, h.asked) // where tokens are not in order the first may be the later one
	}
	return func(h *handle) instant { return asked[h] }
}

// checkData is V2: no acknowledged read-modify-write is lost.
//
// Everybody adds 1 to a number, so each value between 0 and the final one must have been written once: by somebody who
// was told that it is done, or by somebody who never knew. Two acknowledged writes of one value, an acknowledged value
// above the final one, or a value that nobody wrote is a lost or an invented update. With tokens, the accepted ones
// never fall.
func checkData(hs *history, fenced bool) finding {
	var f finding
	for name := range hs.names {
		byValue := map[int64]*handle{}
		doubts := map[int64]bool{}
		for _, h := range hs.granted(name) {
			switch h.write {
			case doubtful:
				doubts[h.value] = true
			case acknowledged:
				f.cases++
				if other := byValue[h.value]; other != nil {
					f.accuse(name, h.leaving, "%s and %s both read %d and wrote %d: an update is lost", other, h, h.read, h.value)
					continue
				}
				byValue[h.value] = h
				if h.value > hs.finals[name] {
					f.accuse(name, h.leaving, "%s was told that %d is written, and in the end there was %d", h, h.value, hs.finals[name])
				}
			case unwritten, refused:
			}
		}
		var last *handle
		for v := int64(1); v <= hs.finals[name]; v++ {
			h := byValue[v]
			if h == nil {
				if !doubts[v] {
					f.accuse(name, 0, "the number passed %d, which nobody wrote", v)
				}
				continue
			}
			if fenced && last != nil && h.fence < last.fence {
				f.accuse(name, h.leaving, "the guard took %d with token %d after %d with token %d", h.value, h.fence, last.value, last.fence)
			}
			last = h
		}
	}
	return f
}

// checkOverlap is V3: there is no instant at which two leases of one name are valid, or more than there are permits.
//
// A lease is valid for certain from the clock's reading after Lock returned to the reading before the last look that
// found it so, because a lease that has ended never becomes valid again. What a process that is stopped would say does
// not count: it says nothing, and when it wakes its first look asks the clock.
func checkOverlap(hs *history, permits int) finding {
	var f finding
	for name := range hs.names {
		var valid []*handle // of those before, the ones that may still be
		for _, h := range hs.granted(name) {
			if !h.confirmed() {
				continue
			}
			f.cases++
			valid = slices.DeleteFunc(valid, func(v *handle) bool { return v.valid <= h.granted })
			if n := len(valid); n >= permits && permits == 1 {
				longest := slices.MaxFunc(valid, func(a, b *handle) int { return cmp.Compare(a.valid, b.valid) })
				f.accuse(name, h.granted, "%s was granted the name while the lease of %s was valid, which it was for another %v",
					h, longest, min(longest.valid, h.valid).sub(h.granted))
			} else if n >= permits {
				args := []any{h, permits}
				for _, v := range valid {
					args = append(args, v)
				}
				f.accuse(name, h.granted, "%s was granted one of %d permits while these were valid:"+strings.Repeat(" %s", n), args...)
			}
			valid = append(valid, h)
		}
	}
	return f
}

// checkSoon is V8: a name that is free, and wanted, is granted before long. It is free when everybody who got in has
// released, and what became of those who did not is not known. What counts is the time in which the waiting process ran, and
// a wait says nothing in which another process that wanted the name was starved: it may have been its turn.
func checkSoon(hs *history, within time.Duration) finding {
	var f finding
	for name := range hs.names {
		free := hs.began
		for _, h := range hs.granted(name) {
			f.cases++
			if waited := h.life.ran(max(free, h.asked), h.granted); waited > within && hs.starved(name, max(free, h.asked), h.granted) {
				f.cases, f.void = f.cases-1, f.void+1
			} else if waited > within {
				f.accuse(name, h.granted, "%s was granted the name after it had been free and wanted for %v", h, waited)
			}
			if free = max(free, h.left); h.left == 0 {
				free = 0
				break
			}
		}
		if free == 0 {
			continue
		}
		var longest *handle // that waited in vain
		var waited time.Duration
		for _, l := range hs.lives {
			for _, h := range l.handles {
				if w := l.ran(max(free, h.asked), min(hs.ended, l.lastBeat)); h.name == name && h.granted == 0 && w > waited {
					longest, waited = h, w
				}
			}
		}
		if longest == nil {
			continue
		}
		if from, to := max(free, longest.asked), min(hs.ended, longest.life.lastBeat); waited > within && hs.starved(name, from, to) {
			f.void++
			continue
		}
		f.cases++
		if waited > within {
			f.accuse(name, max(free, longest.asked), "%s was never granted the name, which had been free and wanted for %v", longest, waited)
		}
	}
	return f
}

// checkGoesOn is V6 while the round goes on: whatever was done to masters, somebody gets in soon after. It says nothing about
// times in which fewer than half of the workers ran, nor about a machine on which nobody got in at any time of the round: that is
// not enough to judge by, and if no round has more, the run fails for that.
func checkGoesOn(hs *history, within time.Duration) (f finding, slowest time.Duration) {
	some := slices.ContainsFunc(hs.lives, func(l *life) bool {
		return slices.ContainsFunc(l.handles, func(h *handle) bool { return h.granted != 0 })
	})
	for _, at := range hs.whole {
		running := 0
		for _, l := range hs.lives {
			if l.lastBeat >= at.add(within) && l.ran(at, at.add(within)) >= within-within/8 {
				running++
			}
		}
		if at.add(within) > hs.ended {
			continue
		}
		if !some || 2*running < hs.slots() {
			f.void++
			continue
		}
		f.cases++
		first := instant(math.MaxInt64)
		for _, l := range hs.lives {
			for _, h := range l.handles {
				if h.granted > at {
					first = min(first, h.granted)
				}
			}
		}
		if first > at.add(within) {
			f.accuse(0, at, "all masters were there again, and for %v nobody got in", within)
			continue
		}
		slowest = max(slowest, first.sub(at))
	}
	return f, slowest
}

// wakeUp is how long a process may run, after it slept through the end of its lease, until the context has ended.
const wakeUp = 10 * time.Millisecond

// notices is what checkNotice found besides violations.
type notices struct {
	finding
	margins []time.Duration // from told to the next grant, where the holder's process ran
	naps    []time.Duration // that a process ran after it woke until the context had ended
	told    int             // by the store when it granted
}

// checkNotice is V4: whoever loses a lease is told at or before the moment at which the next gets in.
//
// Told is when the lease's context had ended; the next is the next lease of that name, from when the store granted it, or from
// when Lock had returned it where the store does not say. Goroutines of every process say each 2 ms that they run. A lease ends a
// grace before the next gets in, or earlier; a process that did not run for most of that grace, because it was stopped or starved,
// could not be told, and then what counts is how long it ran afterwards. One that was starved afterwards, too, says nothing. A holder
// that ran on and was never told is as late as can be.
func checkNotice(hs *history, grace time.Duration) notices {
	var n notices
	at := hs.grants()
	for name := range hs.names {
		handles := slices.DeleteFunc(hs.granted(name), func(h *handle) bool { return !h.confirmed() })
		for i := 0; i+1 < len(handles); i++ {
			h, next := handles[i], handles[i+1]
			if h.leaving != 0 && (h.told == 0 || h.leaving < h.told) {
				continue // released, as far as the holder knows
			}
			granted := next.granted
			if h.life != next.life { // who has it from a goroutine of the same process has it of a grant before
				granted = at(next)
			}
			told, verb := h.told, "was"
			if told == 0 {
				if h.life.lastBeat <= next.granted {
					continue // its process ended first
				}
				told, verb = h.life.lastBeat, "was never"
			}
			n.cases++
			if granted < next.granted {
				n.told++
			}
			if told <= granted {
				n.margins = append(n.margins, granted.sub(told))
				continue
			}
			ran := h.life.ran(granted, told)
			if h.life.ran(granted.add(-grace), granted) < grace/2 {
				if ran <= wakeUp {
					n.naps = append(n.naps, ran)
					continue
				}
				if woke := h.life.woke(granted); ran < told.sub(woke)*7/8 {
					n.cases, n.void = n.cases-1, n.void+1
					continue
				}
			}
			n.accuse(name, granted, "%v %s told of its loss by %v after %v had been granted the name, and ran for %v of that",
				h, verb, told.sub(granted), next, ran)
		}
	}
	return n
}

// jain is the fairness index of shares: 1 when all are equal, 1/n when one has everything.
func jain(shares []int64) float64 {
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
