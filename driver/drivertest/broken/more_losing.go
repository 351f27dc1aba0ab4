package broken

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// moreLosing are faults about how the answers of a session say that claims are gone.
var moreLosing = []Driver{
	{
		Name: "RenewHidesTheGone", Law: "Law08_Expiry", Says: "had expired, and the next Renew neither named it in Lost nor failed with ErrSessionLost:",
		Fault: "Renew names claims that are broken, and none that has expired or was deleted.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(l driver.Loss) bool {
				_, err := s.Session.Wait(ended(), driver.Claim{ID: l.ID})
				return errors.Is(err, driver.ErrGone)
			})
		}),
	},
	{
		Name: "RenewHidesSharers", Law: "Law15_Break", Says: "a read was broken and Renew does not name it in Lost: c",
		Fault: "Renew names exclusive claims that are gone or broken, and no read and no permit.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(l driver.Loss) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return !s.claims[l.ID].Kind.Exclusive()
			})
		}),
	},
	{
		Name: "RenewHidesWaiters", Law: "Law15_Break", Says: "a mutex was broken and Renew does not name it in Lost: c",
		Fault: "Renew names claims that were held and are gone or broken, and none that waited.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(l driver.Loss) bool { return !s.known(l.ID).Held })
		}),
	},
	{
		Name: "RenewTellsOnce", Law: "Also_LostClaims", Says: "in Lost once, and does not name it again although nobody has released it",
		Fault: "A loss is named in the answer to one Renew, and not again until the claim is released.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(l driver.Loss) bool { return s.mark(l.ID, true) })
		}),
	},
	{
		Name: "RenewTellsTheFirst", Law: "Law08_Expiry", Says: "had expired, and the next Renew neither named it in Lost nor failed with ErrSessionLost:",
		Fault: "Renew names one claim that is lost, and no other.",
		new:   losing(func(_ *session, r *driver.Renewal) { r.Lost = r.Lost[:min(1, len(r.Lost))] }),
	},
	{
		Name: "RenewNamesInPublic", Law: "Law15_Break", Says: "a mutex was broken and Renew does not name it in Lost: c",
		Fault: "Renew names lost claims by their public ids.",
		new: losing(func(_ *session, r *driver.Renewal) {
			for i, l := range r.Lost {
				r.Lost[i].ID = driver.PublicID(l.ID)
			}
		}),
	},
	{
		Name: "BrokenIsGone", Law: "Law15_Break", Says: "is lost for another reason: claim gone from the store: want an error that matches ErrBroken",
		Fault: "Renew says of a claim that an operator has marked that it is gone.",
		new: losing(func(_ *session, r *driver.Renewal) {
			for i := range r.Lost {
				r.Lost[i].Err = driver.ErrGone
			}
		}),
	},
	{
		Name: "GoneIsBroken", Law: "Law08_Expiry", Says: "is lost for another reason: broken by an operator: want an error that matches ErrGone",
		Fault: "Renew says of a claim that has expired that an operator broke it.",
		new: losing(func(_ *session, r *driver.Renewal) {
			for i := range r.Lost {
				r.Lost[i].Err = driver.ErrBroken
			}
		}),
	},
	{
		Name: "LostWithoutReason", Law: "Law15_Break", Says: "is lost for another reason: <nil>",
		Fault: "Renew gives no reason.",
		new: losing(func(_ *session, r *driver.Renewal) {
			for i := range r.Lost {
				r.Lost[i].Err = nil
			}
		}),
	},
	{
		Name: "RenewNamesReleased", Law: "Also_LostClaims", Says: "Renew names a claim that w",
		Fault: "Renew names claims that were released here.",
		new: func() *fault {
			f := losing(func(s *session, r *driver.Renewal) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for id := range s.marked {
					r.Lost = append(r.Lost, gone(id))
				}
			})()
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if err == nil {
					s.mark(c.ID, true)
				}
				return held, err
			}
			return f
		},
	},
	{
		Name: "RenewNamesReleasing", Law: "Also_LostClaims", Says: "Renew names a claim that was being re",
		Fault: "A claim that stood here when Renew began, and does not stand in the store, is lost, also if its Release or Requeue is under way.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				stood := s.all()
				r, err := s.Session.Renew(ctx)
				for _, c := range stood {
					if _, ok := find(s.l.look(c.Name), driver.PublicID(c.ID)); err == nil && !ok && !names(r, c.ID) {
						r.Lost = append(r.Lost, gone(c.ID))
					}
				}
				return r, err
			}}
		},
	},
	{
		Name: "RenewNamesComing", Law: "Also_LostClaims", Says: "Renew names a claim that was being acquired",
		Fault: "A claim of which no answer says that it stands is lost, also if its Acquire is under way.",
		new: func() *fault {
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					s.mark(c.ID, true)
					defer s.mark(c.ID, false)
					return s.acquire(ctx, c)
				},
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					var asked []driver.Loss
					s.mu.Lock()
					for id, is := range s.marked {
						if is {
							asked = append(asked, gone(id))
						}
					}
					s.mu.Unlock()
					r, err := s.Session.Renew(ctx)
					if err == nil {
						r.Lost = append(r.Lost, asked...)
					}
					return r, err
				},
			}
		},
	},
	{
		Name: "RenewNamesWaiters", Law: "Law08_Expiry", Says: "want a positive time and nothing lost",
		Fault: "Renew names claims that wait, since they are not among the holders.",
		new: losing(func(s *session, r *driver.Renewal) {
			for _, c := range s.all() {
				if h, ok := find(s.l.look(c.Name), driver.PublicID(c.ID)); ok && !h.Held {
					r.Lost = append(r.Lost, gone(c.ID))
				}
			}
		}),
	},
	{
		Name: "RenewNamesDenied", Law: "Also_LostClaims", Says: "Renew names a claim that was denied",
		Fault: "Renew names tries that were denied.",
		new: func() *fault {
			f := losing(func(s *session, r *driver.Renewal) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for id := range s.marked {
					r.Lost = append(r.Lost, gone(id))
				}
			})()
			f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && !g.Held && !c.Queue {
					s.mark(c.ID, true)
				}
				return g, err
			}
			return f
		},
	},
	{
		Name: "RenewNamesStrangers", Law: "Also_LostClaims", Says: "Renew names a claim that is another session's",
		Fault: "Renew names lost claims of all sessions.",
		new: func() *fault {
			var mu sync.Mutex
			lost := map[string]bool{}
			return losing(func(_ *session, r *driver.Renewal) {
				mu.Lock()
				defer mu.Unlock()
				for _, l := range r.Lost {
					lost[l.ID] = true
				}
				for id := range lost {
					if !names(*r, id) {
						r.Lost = append(r.Lost, gone(id))
					}
				}
			})()
		},
	},
	{
		Name: "GoneIsWaiting", Law: "Law08_Expiry", Says: "which had expired, sleeps on",
		Fault: "Wait of a claim that has expired sleeps on: there is no record that could change.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if errors.Is(err, driver.ErrGone) {
					<-ctx.Done()
					return driver.Grant{}, ctx.Err()
				}
				return g, err
			}}
		},
	},
	{
		Name: "WaitOfTheGoneIsUnknown", Law: "Law08_Expiry", Says: "which had expired, answered error: no row",
		Fault: "Wait of a claim that has expired is an error that says nothing.",
		new:   func() *fault { return &fault{wait: unsaidByWait(driver.ErrGone)} },
	},
	{
		Name: "WaitOfTheBrokenIsUnknown", Law: "Law15_Break", Says: "a Wait under way, whose claim waited and was broken, answered error: no row (outcome",
		Fault: "Wait of a claim that was broken is an error that says nothing.",
		new:   func() *fault { return &fault{wait: unsaidByWait(driver.ErrBroken)} },
	},
	{
		Name: "BrokenWaiterIsLost", Law: "Also_LostClaims", Says: "in a session that lives",
		Fault: "Acquire of a claim that was broken says that the session is lost.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if errors.Is(err, driver.ErrBroken) {
					err = errors.Join(err, driver.ErrSessionLost)
				}
				return g, err
			}}
		},
	},
	{
		Name: "BrokenComesAgain", Law: "Law15_Break", Says: "is in the way: want an error that matches ErrBroken or ErrGone",
		Fault: "A claim that was broken while it waited is put in line again when it is asked for.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if _, ok := find(s.l.look(c.Name), driver.PublicID(c.ID)); errors.Is(err, driver.ErrBroken) && !ok {
					if _, err := s.Session.Release(ctx, c); err != nil {
						return driver.Grant{}, err
					}
					return s.acquire(ctx, c)
				}
				return g, err
			}}
		},
	},
	{
		Name: "GoneWaiterComesAgain", Law: "Law08_Expiry", Says: "had expired while it waited, and stands in line again",
		Fault: "A claim that expired while it waited is put in line again when it is asked for.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if errors.Is(err, driver.ErrGone) && !s.known(c.ID).Held {
					if _, err := s.Session.Release(ctx, c); err != nil {
						return driver.Grant{}, err
					}
					return s.acquire(ctx, c)
				}
				return g, err
			}}
		},
	},
}

// losing passes the answers of Renew on through of.
func losing(of func(*session, *driver.Renewal)) func() *fault {
	return func() *fault {
		return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
			r, err := s.Session.Renew(ctx)
			if err == nil {
				of(s, &r)
			}
			return r, err
		}}
	}
}

func unsaidByWait(instead error) func(*session, context.Context, driver.Claim) (driver.Grant, error) {
	return func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := s.Session.Wait(ctx, c)
		if errors.Is(err, instead) {
			err = errors.New("no row")
		}
		return g, err
	}
}
