package broken

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// moreRenewing are faults about Renew.
var moreRenewing = []Driver{
	{
		Name: "RenewsTheOthers", Law: "Law08_Expiry", Says: "beside another session of its driver, which has a longer time",
		Fault: "Renew of one session renews all of its driver: one that was given up goes on.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				s.l.mu.Lock()
				all := append([]*session(nil), s.l.sessions...)
				s.l.mu.Unlock()
				for _, other := range all {
					if other != s {
						_, _ = other.Session.Renew(ctx)
					}
				}
				return s.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "RenewsTheLatest", Law: "Law04_OnceHeld", Says: "could not renew",
		Fault: "Renew of a driver with several sessions renews the one that was opened last.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				s.l.mu.Lock()
				latest := s.l.sessions[len(s.l.sessions)-1]
				s.l.mu.Unlock()
				return latest.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "RenewOfNothingFails", Law: "Law06_WakeUp", Says: "could not renew",
		Fault: "Renew of a session without claims changes no row, which is taken for an error.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				if len(s.all()) == 0 {
					return driver.Renewal{}, errors.New("no row was changed")
				}
				return s.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "RenewOfNothingIsLost", Law: "Law06_WakeUp", Says: "could not renew",
		Fault: "Renew of a session without claims changes no row, which is taken for the session's end.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				if len(s.all()) == 0 {
					return driver.Renewal{}, driver.ErrSessionLost
				}
				return s.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "RenewSaysTwice", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "The answer to a Renew is what was asked for, and the store gives half of it.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				r.Valid *= 2
				return r, err
			}}
		},
	},
	{
		Name: "RenewSaysHalf", Law: "Law08_Expiry", Says: "too late",
		Fault: "The answer to a Renew is half of the time that the store gives, and the traits have no grain.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				r.Valid /= 2
				return r, err
			}}
		},
	},
	{
		Name: "RenewsTheEnded", Law: "Also_Loss", Says: "Renew of a session that the store ended answered <nil>: want ErrSessionLost",
		Fault: "Renew of a session that the store has ended is answered as if it went on.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				if errors.Is(err, driver.ErrSessionLost) {
					return driver.Renewal{Valid: s.Session.Valid()}, nil
				}
				return r, err
			}}
		},
	},
	{
		Name: "RenewOfTheEndedIsUnknown", Law: "Also_Loss", Says: "Renew of a session that the store ended answered no row: want ErrSessionLost",
		Fault: "Renew of a session that the store has ended is an error that says nothing, for ever.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				if errors.Is(err, driver.ErrSessionLost) {
					err = errors.New("no row")
				}
				return r, err
			}}
		},
	},
}
