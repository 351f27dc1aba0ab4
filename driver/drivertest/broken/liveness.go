package broken

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// liveness are the faults about time, ends and renewal: laws 8, 12 and 16, and losses and contexts.
var liveness = []Driver{
	{
		Name: "TrustsTooLong", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "Valid is what was asked for, and the store gives half of it.",
		new: func() *fault {
			return &fault{valid: func(v time.Duration) time.Duration { return 2 * v }}
		},
	},
	{
		Name: "TrustsTooShort", Law: "Law08_Expiry", Says: "too late",
		Fault: "Claims go a second time later than Valid says, and the traits have no grain.",
		new: func() *fault {
			return &fault{valid: func(v time.Duration) time.Duration { return v / 2 }}
		},
	},
	{
		Name: "AnswersForTheStore", Law: "Law08_Expiry", Says: "which had expired, answered held",
		Fault: "Acquire of a claim that is held is answered from memory, so it renews nothing.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if g := s.known(c.ID); g.Held {
					return g, nil
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "HeartbeatOfItsOwn", Law: "Law08_Expiry", Says: "was not told that it holds",
		Fault: "The driver renews by itself, so a session that its owner gave up goes on.",
		new: func() *fault {
			return &fault{open: func(s *session) {
				go func() {
					for {
						select {
						case <-s.l.closed:
							return
						case <-time.After(s.Session.Valid() / 3):
							_, _ = s.Session.Renew(context.Background()) // nobody asked for it
						}
					}
				}()
			}}
		},
	},
	{
		Name: "RevivesTheExpired", Law: "Law08_Expiry", Says: "want an error that matches ErrGone | stands in line again, behind",
		Fault: "A claim that has expired is put in line again when it is asked for.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if errors.Is(err, driver.ErrGone) {
					_, _ = s.Session.Release(ctx, c) // makes the ID unknown
					return s.acquire(ctx, c)
				}
				return g, err
			}}
		},
	},
	{
		Name: "DoesNotSeeDeath", Law: "Law08_Expiry", Says: "was not told that it holds",
		Fault: "The traits promise to notice a death in 100 ms, and nothing but time ends the claims of a dead process.",
		new:   func() *fault { return &fault{traits: noticing} },
		twin:  func() *fault { return &fault{traits: noticing, kill: endSessions} },
	},
	{
		Name: "SeesDeath", Law: "Law08_Expiry", Says: "Traits.Notice should not be 0",
		Fault: "The claims of a dead process go at once, and the traits do not say so.",
		new:   func() *fault { return &fault{kill: endSessions} },
	},
	{
		Name: "ClaimsExpiry", Law: "Law08_Expiry", Says: "was not told that it holds",
		Fault: "The traits say that claims expire, and they stay.",
		store: memlock.Personality{NoExpiry: true},
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Expires = true }} },
	},
	{
		Name: "ClaimsForever", Law: "Law08_Expiry", Says: "Traits.Expires should be true",
		Fault: "The traits say that claims stay, and they go.",
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Expires = false }} },
	},
	{
		Name: "CloseForgets", Law: "Law12_Close", Says: "was not told that it holds",
		Fault: "Close of a session forgets the claims and leaves them to expire.",
		new: func() *fault {
			over := func(s *session) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.over {
					return driver.ErrSessionLost
				}
				return nil
			}
			return &fault{
				close: func(s *session, _ context.Context) error {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.over = true
					return nil
				},
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					if err := over(s); err != nil {
						return driver.Grant{}, err
					}
					return s.acquire(ctx, c)
				},
			}
		},
	},
	{
		Name: "CloseEndsNothing", Law: "Law12_Close", Says: "after Close of the session an Acquire of it was answered",
		Fault: "Close releases, and the session goes on.",
		new: func() *fault {
			return &fault{close: func(s *session, ctx context.Context) error {
				for _, c := range s.all() {
					if _, err := s.Release(ctx, c); err != nil {
						return err
					}
				}
				return nil
			}}
		},
	},
	{
		Name: "RenewsBehindWriters", Law: "Law16_RenewBounded", Says: "could not renew",
		Fault: "Renew takes the writers' lock of every name, and a stranger was stopped while it had one.",
		new: func() *fault {
			f := behindWriters()
			f.renew = func(s *session, ctx context.Context) (driver.Renewal, error) {
				for _, name := range f.writers.names() {
					if err := f.writers.lock(ctx, name); err != nil {
						return driver.Renewal{}, err
					}
					defer f.writers.unlock(name)
				}
				return s.Session.Renew(ctx)
			}
			return f
		},
		twin: behindWriters,
	},
	{
		Name: "PassesOverTheLetIn", Law: "Also_LetIn", Says: "before the time of … Renew began while the answer that let it in was on its way",
		Fault: "Renew passes over a claim that the store has let in while the answer which says so is on its way, and counts for it all the same.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				for _, c := range s.all() {
					if s.has(c) && !s.known(c.ID).Held {
						_, err := s.l.memory.Line(ctx, c.Name)
						return driver.Renewal{Valid: s.Session.Valid()}, err
					}
				}
				return s.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "DeadProcessIsDeadJob", Law: "Also_Inherit", Says: "while a child of the dead holder had the session's files",
		Fault: "The death of the process that opened the session ends its claims, although a child acts for it.",
		Real:  true,
		new: func() *fault {
			f := boundToFiles()
			f.kill = endSessions
			return f
		},
		twin: boundToFiles,
	},
	{
		Name: "LostStaysOpen", Law: "Also_Loss", Says: "its Lost was not closed",
		Fault: "The channel of losses stays open when the session is lost.",
		new: func() *fault {
			silence := make(chan driver.Loss)
			return &fault{lost: func(*session) <-chan driver.Loss { return silence }}
		},
	},
	{
		Name: "WaitsForEver", Law: "Also_Contexts", Says: "was not back",
		Fault: "Wait does not look at its context.",
		new: func() *fault {
			return &fault{wait: func(s *session, _ context.Context, c driver.Claim) (driver.Grant, error) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				go func() {
					<-s.l.closed
					cancel()
				}()
				return s.Session.Wait(ctx, c)
			}}
		},
	},
}

// behindWriters is a store whose writes take a lock of the name, as a file's do.
func behindWriters() *fault {
	w := &writers{held: map[string]chan struct{}{}}
	return &fault{
		writers: w,
		acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if err := w.lock(ctx, c.Name); err != nil {
				return driver.Grant{}, err
			}
			defer w.unlock(c.Name)
			return s.acquire(ctx, c)
		},
		release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			if err := w.lock(ctx, c.Name); err != nil {
				return false, err
			}
			defer w.unlock(c.Name)
			return s.Session.Release(ctx, c)
		},
	}
}
