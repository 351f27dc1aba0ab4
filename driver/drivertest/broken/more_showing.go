package broken

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreShowing are faults about what people see of claims.
var moreShowing = []Driver{
	{
		Name: "ShowsWeightOne", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Every claim is shown with the weight 1.",
		new:   showingEach(func(h *driver.Holder) { h.Weight = 1 }),
	},
	{
		Name: "ShowsLimitAll", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Every claim is shown with the limit All.",
		new:   showingEach(func(h *driver.Holder) { h.Limit = driver.All }),
	},
	{
		Name: "ShowsWriteAsMutex", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "A write claim is shown as a mutex.",
		new: showingEach(func(h *driver.Holder) {
			if h.Kind == driver.Write {
				h.Kind = driver.Mutex
			}
		}),
	},
	{
		Name: "ShowsWaitersAsHeld", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Whoever stands in line is shown as a holder.",
		new:   showingEach(func(h *driver.Holder) { h.Held = true }),
	},
	{
		Name: "ShowsNoBroken", Law: "Also_Shown", Says: "and is shown with held=true, broken=false: want both",
		Fault: "A claim that is marked is shown as any other.",
		new:   showingEach(func(h *driver.Holder) { h.Broken = false }),
	},
	{
		Name: "ShowsBrokenAsGone", Law: "Also_Shown", Says: "which stands in line, is not shown",
		Fault: "A claim that is marked is not shown, although it keeps others out.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				line.Claims = slices.DeleteFunc(line.Claims, func(h driver.Holder) bool { return h.Broken })
			})
		},
	},
	{
		Name: "ShowsNoNote", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "The note of a claim is not kept.",
		new:   showingEach(func(h *driver.Holder) { h.Note = "" }),
	},
	{
		Name: "NoteIsOneLine", Law: "Also_Shown", Says: "and is shown with 7 as",
		Fault: "A note ends at its first line feed.",
		new:   showingEach(func(h *driver.Holder) { h.Note, _, _ = strings.Cut(h.Note, "\n") }),
	},
	{
		Name: "NoteInASCII", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "What is not ASCII in a note becomes a question mark.",
		new: showingEach(func(h *driver.Holder) {
			h.Note = strings.Map(func(r rune) rune {
				if r > 127 {
					return '?'
				}
				return r
			}, h.Note)
		}),
	},
	{
		Name: "NoteCutAt64", Law: "Also_Shown", Says: "has 256 bytes",
		Fault: "A note holds 64 bytes.",
		new:   showingEach(func(h *driver.Holder) { h.Note = h.Note[:min(len(h.Note), 64)] }),
	},
	{
		Name: "ShowsNoPasses", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "How often a client has passed the name on is not kept.",
		new:   showingEach(func(h *driver.Holder) { h.Passes = 0 }),
	},
	{
		Name: "PassesOf8Bits", Law: "Also_Shown", Says: "was passed on 1000 times, and 232 are shown",
		Fault: "How often a client has passed the name on is kept in eight bits.",
		new:   showingEach(func(h *driver.Holder) { h.Passes &= 255 }),
	},
	{
		Name: "ShowsNoToken", Law: "Also_Inspector", Says: "the holder's token is shown as 0 and is",
		Fault: "A holder is shown without its token.",
		new:   showingEach(func(h *driver.Holder) { h.Fence = 0 }),
	},
	{
		Name: "ShowsHighestOfHolder", Law: "Also_Inspector", Says: "the holder's token is shown as",
		Fault: "A holder is shown with the highest of its tokens, which Break does not take.",
		new: showingEach(func(h *driver.Holder) {
			if h.Fence > 0 {
				h.Fence += driver.Stride - 1
			}
		}),
	},
	{
		Name: "ShowsOwnerShort", Law: "Also_Shown", Says: `"host":"host-A"}, want {"name":`,
		Fault: "Of the owner only its name and host are kept.",
		new: showingEach(func(h *driver.Holder) {
			h.Owner = driver.Owner{Name: h.Owner.Name, Host: h.Owner.Host}
		}),
	},
	{
		Name: "OwnerLosesTime", Law: "Also_Shown", Says: `pppp"}, want {"name":`,
		Fault: "Of the owner everything is kept but its start and boot.",
		new:   showingEach(func(h *driver.Holder) { h.Owner.Start, h.Owner.Boot = time.Time{}, "" }),
	},
	{
		Name: "OwnerOf255Bytes", Law: "Also_Shown", Says: `is shown as {"name":"{\"name\":`,
		Fault: "A column of 255 bytes holds the owner, whose rest is lost.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				b := spec.Owner.Encode()
				spec.Owner = driver.DecodeOwner(b[:min(255, len(b))])
				return l.memory.Open(ctx, spec)
			}}
		},
	},
	{
		Name: "OwnerOf512Fails", Law: "Also_Shown", Says: "could not open a session: refused by the store",
		Fault: "An owner of more than 512 bytes is refused.",
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
		Name: "HolderOfNobody", Law: "Also_Inspector", Says: "is shown as {public: owner: host: ",
		Fault: "Who is in the way is told without a public id and an owner.",
		new:   telling1(func(h *driver.Holder) { h.PublicID, h.Owner = "", driver.Owner{} }),
	},
	{
		Name: "HolderWaits", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Who is in the way is told as one that waits.",
		new:   telling1(func(h *driver.Holder) { h.Held = false }),
	},
	{
		Name: "SinceArrival", Law: "Also_Shown", Says: "before the other came at",
		Fault: "A claim that was granted after a wait is shown as held since it came.",
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
		Name: "SinceNow", Law: "Also_Shown", Says: "which stands there unchanged, is shown to hold since",
		Fault: "Each look shows the claims as of now.",
		new:   showingEach(func(h *driver.Holder) { h.Since = time.Now() }),
	},
	{
		Name: "NoSinceAlone", Law: "Also_Shown", Says: "is shown to hold since 0001-01-01",
		Fault: "Since when it holds stands in the line, and who holds while nobody waits stands in none.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				if len(line.Claims) == 1 {
					line.Claims[0].Since = time.Time{}
				}
			})
		},
	},
	{
		Name: "NoSinceAfterWait", Law: "Also_Shown", Says: "and one that was granted after a wait since 0001-01-01",
		Fault: "A claim that was granted after a wait is shown without the time since when.",
		new: func() *fault {
			known := &owned{}
			f := shown(&fault{}, func(_ *layer, line *driver.Line) {
				for i, h := range line.Claims {
					if c, _, _ := known.claim(h.PublicID); h.Held && c.Queue {
						line.Claims[i].Since = time.Time{}
					}
				}
			})
			f.acquire = known.acquire
			return f
		},
	},
	{
		Name: "SinceRenewal", Law: "Law08_Expiry", Says: "waits in a session that is renewed, and is shown to have come at",
		Fault: "A renewal writes down anew when a claim that waits came.",
		new: func() *fault {
			var mu sync.Mutex
			renewed := map[*session]time.Time{}
			known := &owned{}
			f := shown(&fault{}, func(_ *layer, line *driver.Line) {
				mu.Lock()
				defer mu.Unlock()
				for i, h := range line.Claims {
					if _, s, _ := known.claim(h.PublicID); !h.Held && !renewed[s].IsZero() {
						line.Claims[i].Since = renewed[s]
					}
				}
			})
			f.acquire = known.acquire
			f.renew = func(s *session, ctx context.Context) (driver.Renewal, error) {
				mu.Lock()
				renewed[s] = time.Now()
				mu.Unlock()
				return s.Session.Renew(ctx)
			}
			return f
		},
	},
	{
		Name: "ShowsDeadWaiters", Law: "Law08_Expiry", Says: "waited and its process has died, and it is shown on after its time",
		Fault: "Who waits is shown until somebody finds it dead in its place.",
		new: func() *fault {
			var mu sync.Mutex
			waits := map[string]driver.Claim{} // by public id
			f := shown(&fault{}, func(_ *layer, line *driver.Line) {
				mu.Lock()
				defer mu.Unlock()
				for id, c := range waits {
					there := slices.ContainsFunc(line.Claims, func(h driver.Holder) bool { return h.PublicID == id })
					if c.Name == line.Name && !there {
						line.Claims = append(line.Claims, driver.Holder{PublicID: id, Kind: c.Kind, Weight: c.Weight, Limit: c.Limit})
					}
				}
			})
			f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && !g.Held && c.Queue {
					waits[driver.PublicID(c.ID)] = c
				}
				return g, err
			}
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				mu.Lock()
				delete(waits, driver.PublicID(c.ID))
				mu.Unlock()
				return s.Session.Release(ctx, c)
			}
			return f
		},
	},
	{
		Name: "SinceUTCIsLocal", Law: "Also_Inspector", Says: "is shown to stand there since 2000-01-01 02:00:00 +0000 UTC: that is -2h0m",
		Fault: "The store's local time is read as UTC: Since and Until are two hours late.",
		new: showingEach(func(h *driver.Holder) {
			h.Since = h.Since.Add(2 * time.Hour)
			if !h.Until.IsZero() {
				h.Until = h.Until.Add(2 * time.Hour)
			}
		}),
	},
	{
		Name: "UntilStands", Law: "Law08_Expiry", Says: "of renewals at",
		Fault: "Until is the end that a claim had when it came, whatever was renewed.",
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
}

// telling1 passes the holder that a denied claim is told of on through of.
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
