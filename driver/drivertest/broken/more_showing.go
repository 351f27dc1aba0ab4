package broken

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreShowing are faults about what people see of lines.
var moreShowing = []Driver{
	{
		Name: "ShowsWeightOne", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Every claim is shown with the weight 1.",
		new:   showing1(func(h *driver.Holder) { h.Weight = 1 }),
	},
	{
		Name: "ShowsLimitAll", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Every claim is shown with the limit All.",
		new:   showing1(func(h *driver.Holder) { h.Limit = driver.All }),
	},
	{
		Name: "ShowsWriteAsMutex", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "A write claim is shown as a mutex.",
		new: showing1(func(h *driver.Holder) {
			if h.Kind == driver.Write {
				h.Kind = driver.Mutex
			}
		}),
	},
	{
		Name: "ShowsWaitersAsHeld", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Whoever stands in line is shown as a holder.",
		new:   showing1(func(h *driver.Holder) { h.Held = true }),
	},
	{
		Name:   "ShowsNoBroken",
		Breaks: "Held, Broken bool",
		Want:   "look at a line with a claim that is marked",
		Fault:  "A claim that is marked is shown as any other.",
		new:    showing1(func(h *driver.Holder) { h.Broken = false }),
	},
	{
		Name:   "ShowsBrokenAsGone",
		Breaks: "A held one is marked",
		Want:   "look at a line with a claim that is marked, and want it there",
		Fault:  "A claim that is marked is not shown, although it keeps others out.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				line.Claims = slices.DeleteFunc(line.Claims, func(h driver.Holder) bool { return h.Broken })
			})
		},
	},
	{
		Name: "ShowsNoNote", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "The note of a claim is not kept.",
		new:   showing1(func(h *driver.Holder) { h.Note = "" }),
	},
	{
		Name:   "NoteIsOneLine",
		Breaks: "Note string // of the holder, for people",
		Want:   "look at the claim of a note of two lines",
		Fault:  "A note ends at its first line feed.",
		new:    showing1(func(h *driver.Holder) { h.Note, _, _ = strings.Cut(h.Note, "\n") }),
	},
	{
		Name: "NoteInASCII", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "What is not ASCII in a note becomes a question mark.",
		new: showing1(func(h *driver.Holder) {
			h.Note = strings.Map(func(r rune) rune {
				if r > 127 {
					return '?'
				}
				return r
			}, h.Note)
		}),
	},
	{
		Name:   "NoteCutAt64",
		Breaks: "Note string // of the holder, for people",
		Want:   "look at the claim of a long note",
		Fault:  "A note holds 64 bytes.",
		new:    showing1(func(h *driver.Holder) { h.Note = h.Note[:min(len(h.Note), 64)] }),
	},
	{
		Name: "ShowsNoPasses", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "How often a client has passed the name on is not kept.",
		new:   showing1(func(h *driver.Holder) { h.Passes = 0 }),
	},
	{
		Name:   "PassesOf8Bits",
		Breaks: "how often this client has passed the name on inside its process so far",
		Want:   "look at a claim of a thousand passes",
		Fault:  "How often a client has passed the name on is kept in eight bits.",
		new:    showing1(func(h *driver.Holder) { h.Passes &= 255 }),
	},
	{
		Name: "ShowsNoToken", Law: "Also_Inspector", Says: "the holder's token is shown as 0 and is",
		Fault: "A holder is shown without its token.",
		new:   showing1(func(h *driver.Holder) { h.Fence = 0 }),
	},
	{
		Name: "ShowsHighestOfHolder", Law: "Also_Inspector", Says: "the holder's token is shown as",
		Fault: "A holder is shown with the highest of its tokens, which Break does not take.",
		new: showing1(func(h *driver.Holder) {
			if h.Fence > 0 {
				h.Fence += driver.Stride - 1
			}
		}),
	},
	{
		Name:   "ShowsOwnerShort",
		Breaks: "MaxOwner is the size in bytes that a store must be able to carry for an encoded Owner.",
		Want:   "look at the claim of an owner with all fields",
		Fault:  "Of the owner only its name and host are kept.",
		new: showing1(func(h *driver.Holder) {
			h.Owner = driver.Owner{Name: h.Owner.Name, Host: h.Owner.Host}
		}),
	},
	{
		Name:   "OwnerLosesTime",
		Breaks: "Stores carry its JSON form as opaque bytes.",
		Want:   "look at the claim of an owner with all fields",
		Fault:  "Of the owner everything is kept but its start and boot.",
		new:    showing1(func(h *driver.Holder) { h.Owner.Start, h.Owner.Boot = time.Time{}, "" }),
	},
	{
		Name:   "OwnerOf255Bytes",
		Breaks: "MaxOwner is the size in bytes that a store must be able to carry for an encoded Owner.",
		Want:   "look at the claim of an owner of MaxOwner bytes",
		Fault:  "A column of 255 bytes holds the owner, whose rest is lost.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				b := spec.Owner.Encode()
				spec.Owner = driver.DecodeOwner(b[:min(255, len(b))])
				return l.memory.Open(ctx, spec)
			}}
		},
	},
	{
		Name:   "OwnerOf512Fails",
		Breaks: "MaxOwner is the size in bytes that a store must be able to carry for an encoded Owner.",
		Want:   "open a session with an owner of MaxOwner bytes",
		Fault:  "An owner of more than 512 bytes is refused.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				if len(spec.Owner.Encode()) > 512 {
					return nil, driver.ErrRefused
				}
				return l.memory.Open(ctx, spec)
			}}
		},
	},
	{
		Name: "PublicIDOfSession", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "A claim is shown with the public id of its session.",
		new: func() *fault {
			known := &owned{}
			f := shown(&fault{}, func(_ *layer, line *driver.Line) {
				for i, h := range line.Claims {
					if _, s, _ := known.claim(h.PublicID); s != nil {
						line.Claims[i].PublicID = driver.PublicID(s.spec.ID)
					}
				}
			})
			f.acquire = known.acquire
			return f
		},
	},
	{
		Name: "PublicIDIsSecret", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "A claim is shown with its secret ID.",
		new: func() *fault {
			known := &owned{}
			f := shown(&fault{}, func(_ *layer, line *driver.Line) {
				for i, h := range line.Claims {
					if c, s, _ := known.claim(h.PublicID); s != nil {
						line.Claims[i].PublicID = c.ID
					}
				}
			})
			f.acquire = known.acquire
			return f
		},
	},
	{
		Name: "HolderTellsSecret", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Who is in the way is told with the secret ID of its claim as the note.",
		new: func() *fault {
			known := &owned{}
			f := telling(&fault{acquire: known.acquire}, func(_ *session, _ driver.Claim, g driver.Grant) driver.Grant {
				if g.Holder != nil {
					h := *g.Holder
					c, _, _ := known.claim(h.PublicID)
					h.Note = c.ID
					g.Holder = &h
				}
				return g
			})
			return f
		},
	},
	{
		Name: "HolderOfNobody", Law: "Also_Inspector", Says: "want one of the two that share as read",
		Fault: "Who is in the way is told without a public id and an owner.",
		new:   telling1(func(h *driver.Holder) { h.PublicID, h.Owner = "", driver.Owner{} }),
	},
	{
		Name: "HolderWaits", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Who is in the way is told as one that waits.",
		new:   telling1(func(h *driver.Holder) { h.Held = false }),
	},
	{
		Name:   "SinceArrival",
		Breaks: "when it was granted, or when it entered the line while it waits",
		Want:   "look at a claim that was granted after a wait",
		Fault:  "A claim that was granted after a wait is shown as held since it came.",
		new: func() *fault {
			known := &owned{}
			f := shown(&fault{}, func(_ *layer, line *driver.Line) {
				for i, h := range line.Claims {
					if _, s, since := known.claim(h.PublicID); s != nil {
						line.Claims[i].Since = since
					}
				}
			})
			f.acquire = known.acquire
			return f
		},
	},
	{
		Name:   "SinceNow",
		Breaks: "when it was granted, or when it entered the line while it waits",
		Want:   "look twice at a claim that stands, and want the same Since",
		Fault:  "Each look shows the claims as of now.",
		new:    showing1(func(h *driver.Holder) { h.Since = time.Now() }),
	},
	{
		Name: "SinceUTCIsLocal", Law: "Also_Inspector", Says: "is shown to stand there since 2000-01-01 02:00:00 +0000 UTC: that is -2h0m",
		Fault: "The store's local time is read as UTC: Since and Until are two hours late.",
		new: showing1(func(h *driver.Holder) {
			h.Since = h.Since.Add(2 * time.Hour)
			if !h.Until.IsZero() {
				h.Until = h.Until.Add(2 * time.Hour)
			}
		}),
	},
	{
		Name:   "UntilStands",
		Breaks: "when it goes unless it is renewed",
		Want:   "look at a claim before and after a Renew",
		Fault:  "Until is the end that a claim had when it came, whatever was renewed.",
		new: func() *fault {
			var mu sync.Mutex
			first := map[string]time.Time{}
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				mu.Lock()
				defer mu.Unlock()
				for i, h := range line.Claims {
					if first[h.PublicID].IsZero() {
						first[h.PublicID] = h.Until
					}
					line.Claims[i].Until = first[h.PublicID]
				}
			})
		},
	},
	{
		Name: "ShowsBackwards", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "The claims are shown from the last to the first.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) { slices.Reverse(line.Claims) })
		},
	},
	{
		Name: "ShowsWaitersBackwards", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "The claims that wait are shown from the last to the first.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				i := slices.IndexFunc(line.Claims, func(h driver.Holder) bool { return !h.Held })
				if i >= 0 {
					slices.Reverse(line.Claims[i:])
				}
			})
		},
	},
	{
		Name:   "ShowsTenClaims",
		Breaks: "Claims []Holder // in order, holders and waiters",
		Want:   "look at a line of a hundred claims",
		Fault:  "A line is shown up to its tenth claim.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				line.Claims = line.Claims[:min(10, len(line.Claims))]
			})
		},
	},
	{
		Name: "ShowsAForeigner", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Claims of other sessions of this program are shown as written by another program.",
		new:   showing1(func(h *driver.Holder) { h.Foreign = true }),
	},
	{
		Name:   "ShowsTheExpired",
		Breaks: "when it goes unless it is renewed",
		Want:   "look at a line after the time of its only claim is over",
		Fault:  "A claim is shown for a while after its time is over.",
		new: func() *fault {
			var mu sync.Mutex
			before := map[string]driver.Line{}
			return &fault{looks: func(l *layer, ctx context.Context, name string) (driver.Line, error) {
				line, err := l.memory.Line(ctx, name)
				mu.Lock()
				defer mu.Unlock()
				if old, ok := before[name]; ok && err == nil && len(line.Claims) == 0 {
					for _, h := range old.Claims {
						if h.Held && time.Since(h.Until) >= 0 && time.Since(h.Until) < time.Minute {
							line.Claims = append(line.Claims, h)
						}
					}
					return line, nil
				}
				before[name] = line
				return line, err
			}}
		},
	},
	{
		Name: "ShowsFromACache", Law: "Also_Inspector", Says: "is shown as [{",
		Fault: "A line is shown as it was up to half a second before.",
		new: func() *fault {
			var mu sync.Mutex
			type seen struct {
				line driver.Line
				at   time.Time
			}
			before := map[string]seen{}
			return &fault{looks: func(l *layer, ctx context.Context, name string) (driver.Line, error) {
				mu.Lock()
				defer mu.Unlock()
				if s, ok := before[name]; ok && time.Since(s.at) < 500*time.Millisecond {
					return s.line, nil
				}
				line, err := l.memory.Line(ctx, name)
				before[name] = seen{line, time.Now()}
				return line, err
			}}
		},
	},
	{
		Name: "EmptyIsError", Law: "Also_Inspector", Says: "no row.",
		Fault: "Line of a name where nobody stands is an error.",
		new: func() *fault {
			return &fault{looks: func(l *layer, ctx context.Context, name string) (driver.Line, error) {
				line, err := l.memory.Line(ctx, name)
				if err == nil && len(line.Claims) == 0 {
					err = errors.New("no row")
				}
				return line, err
			}}
		},
	},
	{
		Name: "LineWithoutName", Law: "Also_Inspector", Says: "is the line of",
		Fault: "A line is shown without its name.",
		new:   func() *fault { return shown(&fault{}, func(_ *layer, line *driver.Line) { line.Name = "" }) },
	},
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
		Name:   "WatchStopsAfterTen",
		Breaks: "until the caller stops, ctx ends or an error was yielded",
		Want:   "watch a hundred changes",
		Fault:  "Watch ends after ten changes.",
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
		Name:   "WatchMissesMarks",
		Breaks: "Changes may be merged; the last one is always shown.",
		Want:   "watch a line while its holder is broken without now",
		Fault:  "Watch does not tell that a claim was marked.",
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
		Name:   "WatchMissesExpiry",
		Breaks: "Changes may be merged; the last one is always shown.",
		Want:   "watch a line whose only claim expires",
		Fault:  "Watch does not tell that a claim has expired.",
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
		Name:   "WatchShowsNoTokens",
		Breaks: "Watch yields the line of name now and after every change",
		Want:   "compare what Watch shows with what Line shows",
		Fault:  "What Watch yields has no tokens.",
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

// shown passes what Line, Lines and Watch show on through of.
func shown(f *fault, of func(*layer, *driver.Line)) *fault {
	f.line = of
	f.lines = func(l *layer, ctx context.Context, prefix string) ([]driver.Line, error) {
		lines, err := l.memory.Lines(ctx, prefix)
		for i := range lines {
			of(l, &lines[i])
		}
		return lines, err
	}
	f.watch = func(l *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
		return func(yield func(driver.Line, error) bool) {
			for line, err := range lines {
				of(l, &line)
				if !yield(line, err) {
					return
				}
			}
		}
	}
	return f
}

// showing1 passes every claim that is shown on through of.
func showing1(of func(*driver.Holder)) func() *fault {
	return func() *fault {
		return shown(&fault{}, func(_ *layer, line *driver.Line) {
			for i := range line.Claims {
				of(&line.Claims[i])
			}
		})
	}
}

// telling1 passes who is told to be in the way on through of.
func telling1(of func(*driver.Holder)) func() *fault {
	return func() *fault {
		return telling(&fault{}, func(_ *session, _ driver.Claim, g driver.Grant) driver.Grant {
			if g.Holder != nil {
				h := *g.Holder
				of(&h)
				g.Holder = &h
			}
			return g
		})
	}
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
