package broken

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreSessions are faults about several sessions of a driver, their times and their owners.
var moreSessions = []Driver{
	{
		Name: "FirstTTLForAll", Law: "Law08_Expiry", Says: "beside another session of its driver, which has a longer time",
		Fault: "All sessions of a driver have the time of its first one, and say the one that was asked for.",
		new: func() *fault {
			var mu sync.Mutex
			first := map[*layer]time.Duration{}
			return &fault{
				opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
					mu.Lock()
					if first[l] == 0 {
						first[l] = spec.TTL
					}
					spec.TTL = first[l]
					mu.Unlock()
					return l.memory.Open(ctx, spec)
				},
				validIn: func(s *session, _ time.Duration) time.Duration { return s.spec.TTL },
			}
		},
	},
	{
		Name: "IdleSessionGoes", Law: "Law04_OnceHeld", Says: "and got an error although nothing was wrong",
		Fault: "Renew renews claims, so a session without any is over after twice its time.",
		new: func() *fault {
			var busy stale
			return &fault{
				open: busy.note,
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					if len(s.all()) > 0 {
						busy.note(s)
					}
					return s.Session.Renew(ctx)
				},
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					if busy.is(s) && len(s.all()) == 0 {
						return driver.Grant{}, driver.ErrSessionLost
					}
					busy.note(s)
					return s.acquire(ctx, c)
				},
			}
		},
	},
	{
		Name: "ValidRunsDown", Law: "Law08_Expiry", Says: "does not run down",
		Fault: "Valid is what is left of the session's time, and not what was given.",
		new: func() *fault {
			var opened stale
			return &fault{
				open: opened.note,
				validIn: func(s *session, d time.Duration) time.Duration {
					opened.mu.Lock()
					defer opened.mu.Unlock()
					return d - time.Since(opened.renewed[s])
				},
			}
		},
	},
	{
		Name: "AlmostAsLong", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "Valid is a twentieth more than the store gives.",
		new:   func() *fault { return &fault{valid: func(d time.Duration) time.Duration { return d + d/20 }} },
	},
	{
		Name: "AlmostAsShort", Law: "Law08_Expiry", Says: "too late",
		Fault: "Valid is a twentieth less than the store gives, and the traits have no grain.",
		new:   func() *fault { return &fault{valid: func(d time.Duration) time.Duration { return d - d/20 }} },
	},
	{
		Name: "SecondOpenEndsFirst", Law: "Law03_OneSession", Says: "and got an error although nothing was wrong",
		Fault: "A driver has one session: the next one that it opens ends the one before.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				l.memory.EndSessions()
				return l.memory.Open(ctx, spec)
			}}
		},
	},
	{
		Name: "OneOwnerForAll", Law: "Also_Inspector", Says: "beside another session of its driver",
		Fault: "All sessions of a driver have the owner of its first one.",
		new: func() *fault {
			var mu sync.Mutex
			first := map[*layer]driver.Owner{}
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				mu.Lock()
				if _, known := first[l]; !known {
					first[l] = spec.Owner
				}
				spec.Owner = first[l]
				mu.Unlock()
				return l.memory.Open(ctx, spec)
			}}
		},
	},
	{
		Name: "OpensLater", Law: "Law02_Idempotence", Says: "was answered over a stalled wire: the harness does not stall, or the driver answers for",
		Fault: "Open answers at once, and the store hears of the session with its first request.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				return l.memory.Share().Open(ctx, spec)
			}}
		},
	},
	{
		Name: "DeadWaitersStay", Law: "Law08_Expiry", Says: "and was not told that it holds",
		Fault: "A claim that waits has no time, and the one of a dead process is granted.",
		new: func() *fault {
			return besides(time.Hour, func(s *session, c driver.Claim, _ int) bool {
				return c.Queue && len(s.l.look(c.Name).Claims) > 0
			})
		},
	},
	{
		Name: "WaitersAreNotRenewed", Law: "Law08_Expiry", Says: "too late",
		Fault: "A claim that was granted after a wait is renewed by nobody.",
		new: func() *fault {
			return besides(5*time.Second, func(s *session, c driver.Claim, _ int) bool {
				return c.Queue && len(s.l.look(c.Name).Claims) > 0
			})
		},
	},
}
