package broken

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreReleasing are faults about Release and Requeue.
var moreReleasing = []Driver{
	{
		Name: "WaitingWasHeld", Law: "Law03_OneSession", Says: "waited, and its Release said that it had been held",
		Fault: "Release of a claim that waited says that it was held.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				_, ok := find(s.l.look(c.Name), driver.PublicID(c.ID))
				held, err := s.Session.Release(ctx, c)
				return held || ok && err == nil, err
			}}
		},
	},
	{
		Name: "ExpiredWasHeld", Law: "Law08_Expiry", Says: "which had expired, answered held=true, error <nil>",
		Fault: "Release says from memory whether the claim was held, also where it has expired.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				_, ok := find(s.l.look(c.Name), driver.PublicID(c.ID))
				held, err := s.Session.Release(ctx, c)
				return held || !ok && s.known(c.ID).Held && err == nil, err
			}}
		},
	},
	{
		Name: "NothingWasHeld", Law: "Law02_Idempotence", Says: "had not been held",
		Fault: "Release of a permit says that it was not held.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				return held && c.Kind != driver.Permit, err
			}}
		},
	},
	{
		Name: "UnnoticedWasNotHeld", Law: "Law07_NoHole", Says: "and its own Release",
		Fault: "Release of a claim that was granted says no when its owner had not heard of it.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				return held && s.known(c.ID).Held, err
			}}
		},
	},
	{
		Name: "ReleaseDeletesTheKey", Law: "Law08_Expiry", Says: "and got an error although nothing was wrong",
		Fault: "Release deletes the record of the name, also when somebody else has it by now.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				line := s.l.look(c.Name)
				_, ok := find(line, driver.PublicID(c.ID))
				if s.known(c.ID).Held && !ok && len(line.Claims) > 0 {
					h := line.Claims[0]
					_ = s.l.memory.Break(ctx, c.Name, h.PublicID, h.Fence, true)
				}
				return s.Session.Release(ctx, c)
			}}
		},
	},
	{
		Name: "ReleaseNeedsTheKind", Law: "Law02_Idempotence", Says: "could not release",
		Fault: "Release of a claim of which nothing is known is refused.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				_, ok := find(s.l.look(c.Name), driver.PublicID(c.ID))
				held, err := s.Session.Release(ctx, c)
				if err == nil && !ok && !s.known(c.ID).Held {
					err = driver.ErrRefused
				}
				return held, err
			}}
		},
	},
	{
		Name: "ReleaseOfTheExpiredFails", Law: "Law02_Idempotence", Says: "could not release",
		Fault: "Release of a claim that has expired is ErrGone.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if err == nil && !held && s.known(c.ID).Held {
					err = driver.ErrGone
				}
				return held, err
			}}
		},
	},
	{
		Name: "ReleaseOfTheBrokenFails", Law: "Law15_Break", Says: "could not release",
		Fault: "Release of a claim that is marked is ErrBroken, and releases it.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				h, _ := find(s.l.look(c.Name), driver.PublicID(c.ID))
				held, err := s.Session.Release(ctx, c)
				if err == nil && h.Broken {
					err = driver.ErrBroken
				}
				return held, err
			}}
		},
	},
	{
		Name: "ReleaseOfWaitersLater", Law: "Law03_OneSession", Says: "which nothing stands in the way of",
		Fault: "Release of a claim that waits answers at once, and the store drops it at the next Renew.",
		new: func() *fault {
			return &fault{
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					if h, ok := find(s.l.look(c.Name), driver.PublicID(c.ID)); ok && !h.Held {
						s.mark(c.ID+" "+c.Name, true)
						return false, nil
					}
					return s.Session.Release(ctx, c)
				},
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					s.mu.Lock()
					var ids []string
					for id := range s.marked {
						ids = append(ids, id)
					}
					s.marked = map[string]bool{}
					s.mu.Unlock()
					for _, id := range ids {
						_, _ = s.Session.Release(ctx, driver.Claim{ID: id[:22], Name: id[23:]})
					}
					return s.Session.Renew(ctx)
				},
			}
		},
	},
	{
		Name: "RequeueOfTheGoneFails", Law: "Also_Requeue", Says: "which had been released, answered held=false for it and error: claim gone from the store",
		Fault: "Requeue of a claim that is gone is ErrGone, and the next one is not acquired.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				if _, ok := find(s.l.look(old.Name), driver.PublicID(old.ID)); !ok {
					return driver.Grant{}, false, driver.ErrGone
				}
				return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			}}
		},
	},
	{
		Name: "RequeueOfTheBrokenFails", Law: "Also_Requeue", Says: `for it and error: broken by an operator (is "broken by an operator") for the next: want that only`,
		Fault: "Requeue of a claim that is marked is ErrBroken, and the next one is not acquired.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				if h, _ := find(s.l.look(old.Name), driver.PublicID(old.ID)); h.Broken {
					return driver.Grant{}, false, driver.ErrBroken
				}
				return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			}}
		},
	},
	{
		Name: "RequeueInTwoSteps", Law: "Also_Requeue", Says: "Requeue is one step",
		Fault: "Requeue is a Release and then an Acquire.",
		new:   func() *fault { return inTwoSteps(100 * time.Microsecond) }, // what a request takes
	},
	{
		Name: "RequeueWithAGap", Law: "Also_Requeue", Says: "Requeue is one step",
		Fault: "Requeue is a Release and, some time later, an Acquire.",
		new:   func() *fault { return inTwoSteps(10 * time.Millisecond) },
	},
	{
		Name: "RequeueWasHeld", Law: "Also_Requeue", Says: "which had been released, answered held=true for it and held, token",
		Fault: "Requeue says that the claim before was held, whatever it was.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				g, _, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
				return g, err == nil, err
			}}
		},
	},
	{
		Name: "RequeueKeepsWeight", Law: "Also_Requeue", Says: "which had taken the place of another",
		Fault: "Requeue changes the ID of the record, which keeps its weight and its limit.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				next.Weight, next.Limit, next.Kind = old.Weight, old.Limit, old.Kind
				return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			}}
		},
	},
	{
		Name: "RequeueKeepsNote", Law: "Also_Requeue", Says: "is shown as",
		Fault: "Requeue changes the ID of the record, which keeps its note.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				next.Note, next.Passes = old.Note, old.Passes
				return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			}}
		},
	},
	{
		Name: "RequeueRenewsNothing", Law: "Also_Requeue", Says: "was requeued and answered held, and its rival",
		Fault: "Requeue in a session whose time is over answers held, and the claim goes with the session.",
		new: func() *fault {
			var old stale
			return &fault{
				open:  old.note,
				renew: old.renew,
				requeue: func(s *session, ctx context.Context, before, next driver.Claim) (driver.Grant, bool, error) {
					over := old.is(s)
					g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, before, next)
					if err == nil && over {
						_, _ = s.Session.Release(ctx, next) // the next Acquire drops the claims of sessions that are over
					}
					return g, held, err
				},
			}
		},
	},
	{
		Name: "RequeueWithoutQueueStays", Law: "Also_Requeue", Says: "after a Requeue whose next claim could not be held and may not queue",
		Fault: "Requeue puts the next claim in line although it may not queue.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				next.Queue = true
				return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			}}
		},
	},
	{
		Name: "RequeueOfWaiterKeepsIt", Law: "Also_Requeue", Says: "which waited before it, had been requeued",
		Fault: "Requeue of a claim that waits leaves it in line.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				if h, ok := find(s.l.look(old.Name), driver.PublicID(old.ID)); ok && !h.Held {
					g, err := s.acquire(ctx, next)
					return g, false, err
				}
				return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			}}
		},
	},
	{
		Name: "RequeueTwiceIsTwo", Law: "Also_Requeue", Says: "after the same Requeue was asked for twice",
		Fault: "Requeue that is repeated, as after an answer that was lost, is in line twice.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				if _, ok := find(s.l.look(next.Name), driver.PublicID(next.ID)); ok {
					s.l.remains(next)
				}
				return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			}}
		},
	},
	{
		Name: "RenewOfTheRequeued", Law: "Also_Requeue", Says: "is lost, which was left by a Requeue",
		Fault: "Renew names a claim as lost that was left by a Requeue.",
		new: func() *fault {
			return &fault{
				requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
					g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
					if err == nil {
						s.mark(old.ID, true)
					}
					return g, held, err
				},
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					r, err := s.Session.Renew(ctx)
					s.mu.Lock()
					defer s.mu.Unlock()
					for id := range s.marked {
						r.Lost = append(r.Lost, gone(id))
					}
					return r, err
				},
			}
		},
	},
	{
		Name: "ReleasesSlowly", Law: "Law02_Idempotence", Says: "which nothing stands in the way of",
		Fault: "The next is let in half a second after a Release.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				if h, ok := find(s.l.look(c.Name), driver.PublicID(c.ID)); ok && h.Held {
					time.AfterFunc(500*time.Millisecond, func() { _, _ = s.Session.Release(context.WithoutCancel(ctx), c) })
					return true, nil
				}
				return s.Session.Release(ctx, c)
			}}
		},
	},
}

// inTwoSteps is a Requeue of two requests with a gap between them.
func inTwoSteps(gap time.Duration) *fault {
	return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
		held, err := s.Session.Release(ctx, old)
		if err != nil {
			return driver.Grant{}, false, err
		}
		select {
		case <-time.After(gap):
		case <-ctx.Done():
			return driver.Grant{}, false, ctx.Err()
		}
		g, err := s.acquire(ctx, next)
		return g, held, err
	}}
}
