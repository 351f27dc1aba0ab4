package broken

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// hiding are faults that come together with an error, with an answer that is late, or with silence,
// which could be taken for a slow machine.
var hiding = []Driver{
	{
		Name: "RefusesToRenewWaiters", Law: "Law08_Expiry", Says: "although nothing was wrong: claim gone",
		Fault: "Renew of a session with a claim that waits, and none that is held, is an error, and renews nothing.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				if len(s.all()) > 0 && !s.holds() {
					return driver.Renewal{}, errors.New("it waits")
				}
				return s.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "RenewsForNoTime", Law: "Law08_Expiry", Says: "want a positive time",
		Fault: "The answer to a Renew has no time in it.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				r.Valid = 0
				return r, err
			}}
		},
	},
	{
		Name: "DropsWaiters", Law: "Law08_Expiry", Says: "was let in past it | stands in line again, behind | and was not told that it holds",
		Fault: "Renew reaches what the session holds, and what waits beside it goes unseen after one time, and its Wait goes on.",
		new: func() *fault {
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := s.acquire(ctx, c)
					if err == nil && !g.Held && c.Queue {
						time.AfterFunc(s.Session.Valid(), func() {
							if s.holds() && !s.known(c.ID).Held {
								s.mark(c.ID, true)
								_, _ = s.Session.Release(context.Background(), c) // it is gone already, or goes now
							}
						})
					}
					return g, err
				},
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := s.Session.Wait(ctx, c)
					if s.isMarked(c.ID) {
						<-ctx.Done()
						return driver.Grant{}, ctx.Err()
					}
					return g, err
				},
			}
		},
	},
	{
		Name: "EarlyAndToldLate", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "Claims go a twentieth of their time before it is over, and who waits is told a tenth of it late.",
		new: func() *fault {
			f := tellingLate()
			f.valid = func(v time.Duration) time.Duration { return v * 20 / 19 }
			return f
		},
		twin: tellingLate,
	},
	{
		Name: "UnknownForGone", Law: "Law08_Expiry", Says: "want an error that matches ErrGone",
		Fault: "Acquire of a claim that has expired is an error that says nothing.",
		new:   func() *fault { return &fault{acquire: unsaid(driver.ErrGone)} },
	},
	{
		Name: "UnknownForBroken", Law: "Law15_Break", Says: "want an error that matches ErrBroken",
		Fault: "Acquire of a claim that was broken is an error that says nothing.",
		new:   func() *fault { return &fault{acquire: unsaid(driver.ErrBroken)} },
	},
	{
		Name: "LooksForEver", Law: "Also_Inspector", Says: "was not back",
		Fault: "Line does not look at its context, and is not answered.",
		new: func() *fault {
			return &fault{line: func(l *layer, _ *driver.Line) { <-l.closed }}
		},
	},
}

// tellingLate is a store whose waiters are told a tenth of a time late, which its grain allows.
func tellingLate() *fault {
	traits := func(t *driver.Traits) { t.Grain = 200 * time.Millisecond }
	return &fault{traits: traits, wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := s.Session.Wait(ctx, c)
		select {
		case <-time.After(s.Session.Valid() / 10):
			return g, err
		case <-ctx.Done():
			return driver.Grant{}, ctx.Err()
		}
	}}
}
