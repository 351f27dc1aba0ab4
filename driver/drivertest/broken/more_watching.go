package broken

import (
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreWatching are faults about following a line.
var moreWatching = []Driver{
	{
		Name: "WatchSkipsTheFirst", Law: "Also_Watch", Says: "the watch of a mutex did not show the holder within",
		Fault: "Watch yields changes, and not the line as it is.",
		new: watching(func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool) {
			first := true
			for l, err := range lines {
				if !first || err != nil {
					if !yield(l, err) {
						return
					}
				}
				first = false
			}
		}),
	},
	{
		Name: "WatchDropsTheLast", Law: "Also_Watch", Says: "the watch of a mutex did not show a waiter behind the holder within",
		Fault: "Watch leaves out a change that comes within 100 ms after another.",
		new: watching(func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool) {
			var last time.Time
			for l, err := range lines {
				if err == nil && time.Since(last) < 100*time.Millisecond {
					continue
				}
				last = time.Now()
				if !yield(l, err) {
					return
				}
			}
		}),
	},
	{
		Name: "WatchStopsAfterTen", Law: "Also_Watch", Says: "the watch ended with <nil> before it showed the next holder",
		Fault: "Watch ends after ten changes.",
		new: watching(func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool) {
			n := 0
			for l, err := range lines {
				if n++; n > 10 || !yield(l, err) {
					return
				}
			}
		}),
	},
	{
		Name: "WatchMissesMarks", Law: "Also_Watch", Says: "did not show that the holder is marked within",
		Fault: "Watch does not tell that a claim was marked.",
		new: watching(changed(func(a, b driver.Line) bool {
			return len(a.Claims) == len(b.Claims) && slices.EqualFunc(a.Claims, b.Claims, func(a, b driver.Holder) bool {
				return a.PublicID == b.PublicID && a.Held == b.Held
			})
		})),
	},
	{
		Name: "WatchMissesWaiters", Law: "Also_Watch", Says: "the watch of a mutex did not show a waiter behind the holder within",
		Fault: "Watch tells of holders alone: who comes to wait and who gives up is not told.",
		new: watching(changed(func(a, b driver.Line) bool {
			holders := func(l driver.Line) (ids []string) {
				for _, h := range l.Claims {
					if h.Held {
						ids = append(ids, h.PublicID)
					}
				}
				return ids
			}
			return slices.Equal(holders(a), holders(b))
		})),
	},
	{
		Name: "WatchMissesHandoff", Law: "Also_Watch", Says: "the watch of a mutex did not show the waiter as the holder within",
		Fault: "Watch tells when the number of claims grows, and not when one leaves.",
		new:   watching(changed(func(a, b driver.Line) bool { return len(b.Claims) < len(a.Claims) && len(b.Claims) > 0 })),
	},
	{
		Name: "WatchMissesTheEnd", Law: "Also_Watch", Says: "the watch of a mutex did not show an empty line within",
		Fault: "Watch does not tell that a line became empty.",
		new:   watching(changed(func(_, b driver.Line) bool { return len(b.Claims) == 0 })),
	},
	{
		Name: "WatchMissesExpiry", Law: "Law08_Expiry", Says: "does not show that its time is over",
		Fault: "Watch does not tell that a claim has expired.",
		new: watching(changed(func(a, b driver.Line) bool {
			return slices.ContainsFunc(a.Claims, func(h driver.Holder) bool {
				_, still := find(b, h.PublicID)
				return !still && !h.Until.IsZero() && time.Since(h.Until) >= 0
			})
		})),
	},
	{
		Name: "WatchGoesOn", Law: "Also_Watch", Says: "after its context was cancelled",
		Fault: "Watch does not look at its context: it ends when the driver is closed.",
		new: func() *fault {
			return &fault{watch: func(l *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
				return func(yield func(driver.Line, error) bool) {
					for line, err := range lines {
						if err != nil {
							<-l.closed
						}
						if !yield(line, err) {
							return
						}
					}
				}
			}}
		},
	},
	{
		Name: "OneWatchAtATime", Law: "Also_Watch", Says: "the watch ended with the subscription was taken over before it showed",
		Fault: "A driver has one subscription: the second Watch ends the first.",
		new: func() *fault {
			var mu sync.Mutex
			latest := map[*layer]int{}
			return &fault{watch: func(l *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
				return func(yield func(driver.Line, error) bool) {
					mu.Lock()
					latest[l]++
					mine := latest[l]
					mu.Unlock()
					for line, err := range lines {
						mu.Lock()
						over := latest[l] != mine
						mu.Unlock()
						if over {
							yield(driver.Line{}, errors.New("the subscription was taken over"))
							return
						}
						if !yield(line, err) {
							return
						}
					}
				}
			}}
		},
	},
	{
		Name: "WatchShowsNoTokens", Law: "Also_Watch", Says: "did not show what Line shows of a waiter behind a holder within",
		Fault: "What Watch yields has no tokens.",
		new: watching(func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool) {
			for l, err := range lines {
				l.Fence, l.Claims = 0, slices.Clone(l.Claims)
				for i := range l.Claims {
					l.Claims[i].Fence = 0
				}
				if !yield(l, err) {
					return
				}
			}
		}),
	},
	{
		Name: "WatchShowsHolders", Law: "Also_Watch", Says: "the watch of a mutex did not show a waiter behind the holder within",
		Fault: "What Watch yields has no claims that wait.",
		new: watching(func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool) {
			for l, err := range lines {
				l.Claims = slices.DeleteFunc(slices.Clone(l.Claims), func(h driver.Holder) bool { return !h.Held })
				if !yield(l, err) {
					return
				}
			}
		}),
	},
}

// watching is a Watch of its own over memlock's.
func watching(watch func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool)) func() *fault {
	return func() *fault {
		return &fault{watch: func(_ *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
			return func(yield func(driver.Line, error) bool) { watch(lines, yield) }
		}}
	}
}

// changed is a Watch that leaves out changes for which same answers true, as often as it does.
func changed(same func(a, b driver.Line) bool) func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool) {
	return func(lines iter.Seq2[driver.Line, error], yield func(driver.Line, error) bool) {
		first, before := true, driver.Line{}
		for l, err := range lines {
			if (first || err != nil || !same(before, l)) && !yield(l, err) {
				return
			}
			first, before = false, l
		}
	}
}
