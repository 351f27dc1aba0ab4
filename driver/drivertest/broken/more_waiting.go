package broken

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreWaiting are faults about Wait, and about which waiter is told of what.
var moreWaiting = []Driver{
	{
		Name: "DeafToExpiry", Law: "Law08_Expiry", Says: "too late",
		Fault: "Who waits is told of releases, and hears of an expiry at its next Renew.",
		new:   deaf(expired, nil),
	},
	{
		Name: "DeafToExpiryOfPermits", Law: "Law08_Expiry", Says: "too late",
		Fault: "Who waits for a permit is told of releases, and hears of an expiry at its next Renew.",
		new:   deaf(expired, func(c driver.Claim) bool { return c.Kind == driver.Permit }),
	},
	{
		Name: "DeafToCloseOfSharers", Law: "Also_Told", Says: "and was not told that it holds after the Close of the session of c",
		Fault: "Close of a session tells those who wait for a mutex, and nobody else.",
		new:   deaf(closed, func(c driver.Claim) bool { return c.Kind != driver.Mutex }),
	},
	{
		Name: "DeafToBreak", Law: "Also_Told", Says: "and was not told that it holds after the Break with now of c",
		Fault: "Break with now tells nobody: who waits hears at its next Renew.",
		new:   deaf(brokenOff, nil),
	},
	{
		Name: "DeafToRequeue", Law: "Also_Told", Says: "and was not told that it holds after the Requeue of c",
		Fault: "Requeue tells nobody: who waits hears at its next Renew.",
		new:   deaf(requeued, nil),
	},
	{
		Name: "DeafToRequeueOfSharers", Law: "Also_Told", Says: "and was not told that it holds after the Requeue of c",
		Fault: "Requeue tells those who wait for a mutex, and nobody else.",
		new:   deaf(requeued, func(c driver.Claim) bool { return c.Kind != driver.Mutex }),
	},
	{
		Name: "DeafToGivingUp", Law: "Also_Told", Says: "and was not told that it holds after the Release, while it waited ahead, of c",
		Fault: "The Release of a claim that waited tells nobody: the readers behind it hear at their next Renew.",
		new:   deaf(gaveUp, nil),
	},
	{
		Name: "DeafToGivingUpOfPermits", Law: "Also_Told", Says: "and was not told that it holds after the Release, while it waited ahead, of c",
		Fault: "The Release of a permit that waited tells nobody: the smaller ones behind it hear at their next Renew.",
		new:   deaf(gaveUp, func(c driver.Claim) bool { return c.Kind == driver.Permit }),
	},
	{
		Name: "DeafToGivingUpOfWriters", Law: "Also_Told", Says: "and was not told that it holds after the Release, while it waited ahead, of c",
		Fault: "The Release of a write claim that waited tells no reader: it hears at its next Renew.",
		new:   deaf(gaveUp, func(c driver.Claim) bool { return c.Kind == driver.Read }),
	},
	{
		Name: "DeafToReleaseOfReaders", Law: "Law06_WakeUp", Says: "and was not told that it holds",
		Fault: "The Release of a reader tells nobody: the writer hears at its next Renew.",
		new:   deaf(released, func(c driver.Claim) bool { return c.Kind == driver.Write }),
	},
	{
		Name: "DeafToWaitingBroken", Law: "Also_Told", Says: "and was not told that it holds after the Break, while it waited ahead, of c",
		Fault: "The Break of a claim that waits tells nobody who stands behind it: they hear at their next Renew.",
		new:   deaf(waitBroken, nil),
	},
	{
		Name: "LockDelay", Law: "Also_Told", Says: "and was not told that it holds after the Close of the session of c",
		Fault: "After the Close of a session the next is let in a second later.",
		new: func() *fault {
			k := &causes{}
			f := k.fault()
			f.wait = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				return k.wait(s, ctx, c, func(why cause) error {
					if why != closed {
						return nil
					}
					select {
					case <-time.After(time.Second):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			}
			return f
		},
	},
	{
		Name: "WaitOfTheHeldHangs", Law: "Also_Told", Says: "and was not told that it holds after Acquire had said so",
		Fault: "Wait of a claim that was told to be held sleeps, since nothing more happens to it.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if s.known(c.ID).Held {
					<-ctx.Done()
					return driver.Grant{}, ctx.Err()
				}
				return s.Session.Wait(ctx, c)
			}}
		},
	},
	{
		Name: "SecondWaitHangs", Law: "Also_Told", Says: "and was not told that it holds after a Wait had said so",
		Fault: "A grant is told by one Wait, and the next one of the same claim sleeps.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if s.isMarked(c.ID) {
					<-ctx.Done()
					return driver.Grant{}, ctx.Err()
				}
				g, err := s.Session.Wait(ctx, c)
				s.mark(c.ID, g.Held)
				return g, err
			}}
		},
	},
	{
		Name: "CancelledWaitLeaves", Law: "Law02_Idempotence", Says: "and was not told that it holds",
		Fault: "A mutex whose Wait was cancelled has left the line.",
		new:   cancelledLeaves(driver.Mutex),
	},
	{
		Name: "CancelledPermitLeaves", Law: "Law02_Idempotence", Says: "and was not told that it holds",
		Fault: "A permit whose Wait was cancelled has left the line.",
		new:   cancelledLeaves(driver.Permit),
	},
	{
		Name: "CancelledWriteLeaves", Law: "Law02_Idempotence", Says: "and was not told that it holds",
		Fault: "A write claim whose Wait was cancelled has left the line.",
		new:   cancelledLeaves(driver.Write),
	},
	{
		Name: "DeafAfterCancel", Law: "Law08_Expiry", Says: "too late",
		Fault: "A cancelled Wait ends the subscription, so the next one of the claim hears at the next Renew.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				cancelled := s.isMarked(c.ID)
				had := s.has(c)
				g, err := s.Session.Wait(ctx, c)
				switch {
				case err != nil:
					s.mark(c.ID, true)
				case cancelled && g.Held && !had:
					return g, s.untilRenewed(ctx)
				}
				return g, err
			}}
		},
	},
	{
		Name: "WaitersByName", Law: "Also_Told", Says: "and was not told that it holds after it was let in while other Waits of its session and process were under way",
		Fault: "Who waits is kept by name: of two claims of a session the one before hears at its next Renew.",
		new: func() *fault {
			var mu sync.Mutex
			latest := map[*session]map[string]string{}
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				mu.Lock()
				if latest[s] == nil {
					latest[s] = map[string]string{}
				}
				latest[s][c.Name] = c.ID
				mu.Unlock()
				g, err := s.Session.Wait(ctx, c)
				mu.Lock()
				mine := latest[s][c.Name] == c.ID
				mu.Unlock()
				if g.Held && !mine {
					return g, s.untilRenewed(ctx)
				}
				return g, err
			}}
		},
	},
	{
		Name: "WaitersBySession", Law: "Also_Told", Says: "and was not told that it holds after it was let in while other Waits of its session and process were under way",
		Fault: "A session has one waiter: of its claims that wait in several lines the latest alone is told.",
		new: func() *fault {
			var mu sync.Mutex
			latest := map[*session]string{}
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				mu.Lock()
				latest[s] = c.ID
				mu.Unlock()
				g, err := s.Session.Wait(ctx, c)
				mu.Lock()
				mine := latest[s] == c.ID
				mu.Unlock()
				if g.Held && !mine {
					return g, s.untilRenewed(ctx)
				}
				return g, err
			}}
		},
	},
	{
		Name: "WaitersByNameOfDriver", Law: "Also_Told", Says: "and was not told that it holds after it was let in while other Waits of its session and process were under way",
		Fault: "Who waits is kept by name in the driver: of two sessions of it the one before hears at its next Renew.",
		new: func() *fault {
			var mu sync.Mutex
			latest := map[*layer]map[string]*session{}
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				mu.Lock()
				if latest[s.l] == nil {
					latest[s.l] = map[string]*session{}
				}
				latest[s.l][c.Name] = s
				mu.Unlock()
				g, err := s.Session.Wait(ctx, c)
				mu.Lock()
				mine := latest[s.l][c.Name] == s
				mu.Unlock()
				if g.Held && !mine {
					return g, s.untilRenewed(ctx)
				}
				return g, err
			}}
		},
	},
	{
		Name: "WaitsOneTime", Law: "Law08_Expiry", Says: "Wait of V for c",
		Fault: "A claim that has waited for three times-to-live leaves the line: the store ends long transactions.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				s.mu.Lock()
				started := s.started[c.ID]
				s.mu.Unlock()
				long, cancel := context.WithDeadline(ctx, started.Add(3*s.Session.Valid()))
				defer cancel()
				g, err := s.Session.Wait(long, c)
				if err != nil && long.Err() != nil && ctx.Err() == nil {
					_, _ = s.Session.Release(ctx, c)
					return driver.Grant{}, driver.ErrGone
				}
				return g, err
			}}
		},
	},
	{
		Name: "AskedAgainStaysDeaf", Law: "Law08_Expiry", Says: "too late",
		Fault: "A claim that waits and is asked for again is told of nothing more until the next Renew.",
		new: func() *fault {
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					s.mu.Lock()
					_, stood := s.claims[c.ID]
					s.mu.Unlock()
					g, err := s.acquire(ctx, c)
					if stood && !g.Held {
						s.mark(c.ID, true)
					}
					return g, err
				},
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					had := s.has(c)
					g, err := s.Session.Wait(ctx, c)
					if s.isMarked(c.ID) && g.Held && !had {
						return g, s.untilRenewed(ctx)
					}
					return g, err
				},
			}
		},
	},
}

// cancelledLeaves releases a claim of a kind whose Wait was ended.
func cancelledLeaves(kind driver.Kind) func() *fault {
	return func() *fault {
		return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := s.Session.Wait(ctx, c)
			if err != nil && ctx.Err() != nil && c.Kind == kind {
				_, _ = s.Session.Release(context.WithoutCancel(ctx), c) // a wire that fails is no part of the fault
			}
			return g, err
		}}
	}
}

// cause is how a claim left a line.
type cause int

const (
	expired cause = iota
	released
	gaveUp
	closed
	requeued
	brokenOff
	waitBroken
)

// causes knows how the last claim left each line.
type causes struct {
	mu   sync.Mutex
	last map[string]left
}

type left struct {
	why cause
	at  time.Time
}

func (k *causes) note(name string, why cause) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		k.last = map[string]left{}
	}
	k.last[name] = left{why, time.Now()}
}

func (k *causes) leaving(s *session, c driver.Claim, held cause) {
	if h, ok := find(s.l.look(c.Name), driver.PublicID(c.ID)); ok {
		if !h.Held {
			held = gaveUp
		}
		k.note(c.Name, held)
	}
}

// fault notes how claims leave.
func (k *causes) fault() *fault {
	return &fault{
		release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			k.leaving(s, c, released)
			return s.Session.Release(ctx, c)
		},
		requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
			k.leaving(s, old, requeued)
			return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
		},
		close: func(s *session, ctx context.Context) error {
			for _, c := range s.all() {
				k.leaving(s, c, closed)
			}
			return s.Session.Close(ctx)
		},
		breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
			if h, ok := find(l.look(name), publicID); ok && !h.Held { //nolint:contextcheck // over a wire that nobody cuts
				k.note(name, waitBroken)
			} else if now {
				k.note(name, brokenOff)
			}
			return l.memory.Break(ctx, name, publicID, fence, now)
		},
	}
}

// wait calls before with the cause of a grant that came during it.
func (k *causes) wait(s *session, ctx context.Context, c driver.Claim, before func(cause) error) (driver.Grant, error) { //nolint:revive // in the order of a fault
	had := s.has(c)
	g, err := s.Session.Wait(ctx, c)
	if err != nil || !g.Held || had {
		return g, err
	}
	k.mu.Lock()
	last, why := k.last[c.Name], expired
	k.mu.Unlock()
	if time.Since(last.at) < time.Millisecond {
		why = last.why
	}
	return g, before(why)
}

// deaf is a store that does not tell waiters of a grant that one way of leaving brought about:
// those that which picks hear of it at their next Renew.
func deaf(to cause, which func(driver.Claim) bool) func() *fault {
	return func() *fault {
		k := &causes{}
		f := k.fault()
		f.wait = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			return k.wait(s, ctx, c, func(why cause) error {
				if why != to || which != nil && !which(c) {
					return nil
				}
				return s.untilRenewed(ctx)
			})
		}
		return f
	}
}
