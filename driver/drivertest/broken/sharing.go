package broken

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// sharing are faults of readers and permits alone.
var sharing = []Driver{
	{
		Name: "WaitTellsReadersAtOnce", Law: "Law02_Idempotence", Says: "Wait says that this read is held while A holds the name",
		Fault: "Wait of a read answers held although a writer stands before it.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if c.Kind == driver.Read {
					return driver.Grant{Held: true}, nil
				}
				return s.Session.Wait(ctx, c)
			}}
		},
	},
	{
		Name: "ReaderLosesItsPlace", Law: "Law02_Idempotence", Says: `read on "place-read`,
		Fault: "A read claim whose Wait ended is put at the end of the line.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if err != nil && ctx.Err() != nil && c.Kind == driver.Read {
					again := context.WithoutCancel(ctx)
					_, _ = s.Session.Release(again, c) // a wire that fails is no part of the fault
					_, _ = s.acquire(again, c)
				}
				return g, err
			}}
		},
	},
	{
		Name: "ReleaseAddsRoom", Law: "Law02_Idempotence", Says: `permit 2 of 4, try on "again-permit`,
		Fault: "The second Release of a permit gives it back once more.",
		new:   releaseAddsRoom,
	},
	{
		Name: "WakesOnePermit", Law: "Law06_WakeUp", Says: "after a release that lets in four",
		Fault: "A release wakes one waiter, although several permits fit; the others hear at the next Renew.",
		new: func() *fault {
			var woken oneOf
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if err == nil && g.Held && c.Kind == driver.Permit && c.Weight == 1 && !woken.first(c.Name) {
					return g, s.untilRenewed(ctx)
				}
				return g, err
			}}
		},
	},
	{
		Name: "FoldsPermits", Law: "Law09_Names", Says: "is not free for a permit although nobody has used it",
		Fault: "Permits stand in a table of their own, whose collation folds case.",
		new: func() *fault {
			fold := func(c driver.Claim) driver.Claim {
				if c.Kind == driver.Permit {
					c.Name = strings.ToLower(c.Name)
				}
				return c
			}
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					return s.acquire(ctx, fold(c))
				},
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					return s.Session.Wait(ctx, fold(c))
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					return s.Session.Release(ctx, fold(c))
				},
			}
		},
	},
	{
		Name: "LooksFirstAtReaders", Law: "Law10_Quiet", Says: "a free read claim cost 2 calls",
		Fault: "A reader looks who is there and then joins them: two round trips, and the budget says one.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if c.Kind == driver.Read {
					_, _ = s.l.memory.Line(ctx, c.Name) // the answer is old before it is used
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "RequeueForgetsSharers", Law: "Also_Requeue", Says: "which was held, that it had not been",
		Fault: "Requeue says of a read or a permit that it was not held.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
				return g, held && old.Kind.Exclusive(), err
			}}
		},
	},
	{
		Name: "ShowsReadersAsOne", Law: "Also_Inspector", Says: "two share as read and one waits, has 2 claims",
		Fault: "Readers that share are shown as one claim.",
		new: func() *fault {
			return &fault{line: func(_ *layer, line *driver.Line) {
				var shown []driver.Holder
				for _, h := range line.Claims {
					if n := len(shown); n == 0 || h.Kind != driver.Read || shown[n-1].Kind != driver.Read {
						shown = append(shown, h)
					}
				}
				line.Claims = shown
			}}
		},
	},
	{
		Name: "IsInItsOwnWay", Law: "Also_Inspector", Says: "is said to be in the way of",
		Fault: "Whoever is behind readers or permits is told that it is in its own way.",
		new: func() *fault {
			return telling(&fault{}, func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
				if g.Holder != nil && !g.Holder.Kind.Exclusive() {
					h := *g.Holder
					h.Kind, h.PublicID = c.Kind, driver.PublicID(c.ID)
					g.Holder = &h
				}
				return g
			})
		},
	},
	{
		Name: "WatchMissesSharers", Law: "Also_Watch", Says: "the watch of a read did not show",
		Fault: "Watch tells of mutexes and write locks, and not of readers and permits that come and go.",
		new: func() *fault {
			return &fault{watch: func(_ *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
				return func(yield func(driver.Line, error) bool) {
					shared := func(l driver.Line) bool { return len(l.Claims) > 0 && !l.Claims[0].Kind.Exclusive() }
					first, before := true, driver.Line{}
					for l, err := range lines {
						if (first || err != nil || !shared(l) && !shared(before)) && !yield(l, err) {
							return
						}
						first, before = false, l
					}
				}
			}}
		},
	},
}

func releaseAddsRoom() *fault {
	var mu sync.Mutex
	room := map[string]int{}
	return &fault{
		acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			mu.Lock()
			c.Limit = min(c.Limit+room[c.Name], driver.All)
			mu.Unlock()
			return s.acquire(ctx, c)
		},
		release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			held, err := s.Session.Release(ctx, c)
			if err == nil && !held && c.Kind == driver.Permit {
				mu.Lock()
				room[c.Name] += c.Weight
				mu.Unlock()
			}
			return held, err
		},
	}
}
