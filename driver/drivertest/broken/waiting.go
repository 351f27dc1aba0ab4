package broken

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// waiting are the faults about waiting and giving up: laws 6, 7, 10, 13 and 14.
var waiting = []Driver{
	{
		Name: "WaitsBeforeItLooks", Law: "Law06_WakeUp", Says: "was not told that it holds",
		Fault: "Wait subscribes and then waits without a look: a grant that came before it is heard at the next Renew.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if g, _ := s.Session.Wait(ended(), c); g.Held && !s.known(c.ID).Held {
					if err := s.untilRenewed(ctx); err != nil {
						return driver.Grant{}, err
					}
				}
				return s.Session.Wait(ctx, c)
			}}
		},
	},
	{
		Name: "WakesOne", Law: "Law06_WakeUp", Says: "was not told that it holds",
		Fault: "A release wakes one waiter, although it lets in all the readers; the others hear at the next Renew.",
		new: func() *fault {
			var woken oneOf
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if err == nil && g.Held && c.Kind == driver.Read && !woken.first(c.Name) {
					return g, s.untilRenewed(ctx)
				}
				return g, err
			}}
		},
	},
	{
		Name: "WaiterStaysInLine", Law: "Law07_NoHole", Says: "was not told that it holds",
		Fault: "A waiter whose Wait was cancelled is forgotten by its process and stays in line, where it is granted.",
		new: func() *fault {
			return &fault{
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := s.Session.Wait(ctx, c)
					s.mark(c.ID, err != nil)
					return g, err
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					if s.mark(c.ID, false) {
						return false, nil
					}
					return s.Session.Release(ctx, c)
				},
			}
		},
	},
	{
		Name: "LeavesNobodyFirst", Law: "Law07_NoHole", Says: "had waited before it and gave up",
		Fault: "Only the first in line looks when a holder's time is over, and one that gives up tells nobody that it is the first now.",
		new: func() *fault {
			var left, handed sync.Map // names
			return &fault{
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := s.Session.Wait(ctx, c)
					_, gaveUp := left.Load(c.Name)
					if _, released := handed.Load(c.Name); err == nil && g.Held && gaveUp && !released {
						return g, s.untilRenewed(ctx)
					}
					return g, err
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					held, err := s.Session.Release(ctx, c)
					if held {
						handed.Store(c.Name, nil)
					} else {
						left.Store(c.Name, nil)
					}
					return held, err
				},
			}
		},
	},
	{
		Name: "Polls", Law: "Law10_Quiet", Says: "a handoff cost 2 calls",
		Fault: "Wait asks every 20 ms, and the traits say that waiters are told.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				return driver.Poll(ctx, 20*time.Millisecond, 20*time.Millisecond, func(ctx context.Context) (driver.Grant, error) {
					return s.acquire(ctx, c)
				})
			}}
		},
	},
	{
		Name: "AsksOnTop", Law: "Law10_Quiet", Says: "idle waiters of one process and name cost",
		Fault: "Wait is told, and asks every 50 ms all the same.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				if g, err := s.Session.Wait(soon, c); err == nil || soon.Err() == nil {
					return g, err
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "LooksFirst", Law: "Law10_Quiet", Says: "a free mutex claim cost 2 calls",
		Fault: "Acquire looks whether the name is free and then takes it: two round trips, and the budget says one.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				_, _ = s.l.memory.Line(ctx, c.Name) // the answer is old before it is used
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "ClaimsPolling", Law: "Law10_Quiet", Says: "then Traits.Events should have it",
		Fault: "The traits say that waiters have to ask, and they are told.",
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Events = 0 }} },
	},
	{
		Name: "ClaimsPollingOfReads", Law: "Law10_Quiet", Says: "of kind read cost nothing",
		Fault: "The traits say that waiters of kind read have to ask, and they are told.",
		new: func() *fault {
			return &fault{traits: func(t *driver.Traits) { t.Events &^= driver.KindsOf(driver.Read) }}
		},
	},
	{
		Name: "ForgetsWhatTimedOut", Law: "Law13_NothingStays", Says: "still keeps others out after its only other claim timed out",
		Fault: "A claim whose Acquire failed is unknown to its process, and its Release is answered without the store.",
		new: func() *fault {
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := s.acquire(ctx, c)
					s.mark(c.ID, err != nil)
					return g, err
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					if s.isMarked(c.ID) {
						return false, nil
					}
					return s.Session.Release(ctx, c)
				},
			}
		},
	},
	{
		Name: "RetriesByItself", Law: "Law13_NothingStays", Says: "straggled in after the Release",
		Fault: "The client library repeats an Acquire that was not answered, 100 ms later, when it has been released.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err != nil {
					time.AfterFunc(100*time.Millisecond, func() { _, _ = s.acquire(context.WithoutCancel(ctx), c) })
				}
				return g, err
			}}
		},
	},
	{
		Name: "RenewsWhatIsReleased", Law: "Law13_NothingStays", Says: "after the Release of a mutex was lost and the session was renewed",
		Fault: "Renew renews the session's claims in the store, also the one whose Release was lost.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				for _, c := range s.all() { // an Acquire of its own renews a claim, and nothing is compared
					if _, err := s.acquire(ctx, c); err != nil {
						return driver.Renewal{}, err
					}
				}
				return driver.Renewal{Valid: s.Session.Valid()}, nil
			}}
		},
	},
	{
		Name: "HearsOrNever", Law: "Law14_LostNotice", Says: "has become held, and Wait does not say so after a Renew",
		Fault: "Wait knows only what notices and replies to Acquire told it; Renew looks at times and not at grants.",
		store: memlock.Personality{Notices: memlock.Lost},
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if g := s.known(c.ID); g.Held {
					return g, nil
				}
				<-ctx.Done()
				return driver.Grant{}, ctx.Err()
			}}
		},
	},
}
