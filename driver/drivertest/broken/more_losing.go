package broken

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// moreLosing are faults about how a session says that claims are gone.
var moreLosing = []Driver{
	{
		Name: "RenewHidesTheGone", Law: "Law08_Expiry", Says: "had expired, and the next Renew neither named it in Lost nor failed with ErrSessionLost:",
		Fault: "Renew names claims that are broken, and none that has expired or was deleted.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(id string) bool {
				_, err := s.Session.Wait(ended(), driver.Claim{ID: id})
				return errors.Is(err, driver.ErrGone)
			})
		}),
	},
	{
		Name: "RenewHidesSharers", Law: "Law15_Break", Says: "a read was broken and Renew does not name it in Lost: c",
		Fault: "Renew names exclusive claims that are gone or broken, and no read and no permit.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(id string) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return !s.claims[id].Kind.Exclusive()
			})
		}),
	},
	{
		Name: "RenewHidesWaiters", Law: "Law15_Break", Says: "a mutex was broken and Renew does not name it in Lost: c",
		Fault: "Renew names claims that were held and are gone or broken, and none that waited.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(id string) bool { return !s.known(id).Held })
		}),
	},
	{
		Name:   "RenewTellsOnce",
		Breaks: "those stand in line until they are released or their time is over",
		Want:   "renew twice after a Break, and want the claim named each time",
		Fault:  "A loss is named in the answer to one Renew, and not again until the claim is released.",
		new: losing(func(s *session, r *driver.Renewal) {
			r.Lost = slices.DeleteFunc(r.Lost, func(id string) bool { return s.mark(id, true) })
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
			for i, id := range r.Lost {
				r.Lost[i] = driver.PublicID(id)
			}
		}),
	},
	{
		Name:   "RenewNamesReleased",
		Breaks: "claims that are no longer in line although nobody here released them",
		Want:   "renew after a Release, and want nothing lost",
		Fault:  "Renew names claims that were released here.",
		new: func() *fault {
			f := losing(func(s *session, r *driver.Renewal) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for id := range s.marked {
					r.Lost = append(r.Lost, id)
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
		Name: "RenewNamesWaiters", Law: "Law08_Expiry", Says: "want a positive time and nothing lost",
		Fault: "Renew names claims that wait, since they are not among the holders.",
		new: losing(func(s *session, r *driver.Renewal) {
			for _, c := range s.all() {
				if h, ok := find(s.l.look(c.Name), driver.PublicID(c.ID)); ok && !h.Held {
					r.Lost = append(r.Lost, c.ID)
				}
			}
		}),
	},
	{
		Name:   "RenewNamesDenied",
		Breaks: "claims that are no longer in line although nobody here released them",
		Want:   "renew after a try that was denied, and want nothing lost",
		Fault:  "Renew names tries that were denied.",
		new: func() *fault {
			f := losing(func(s *session, r *driver.Renewal) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for id := range s.marked {
					r.Lost = append(r.Lost, id)
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
		Name:   "RenewNamesStrangers",
		Breaks: "who knows it can release the claim",
		Want:   "renew a session after a claim of another one was lost, and want nothing lost",
		Fault:  "Renew names lost claims of all sessions.",
		new: func() *fault {
			var mu sync.Mutex
			lost := map[string]bool{}
			return losing(func(_ *session, r *driver.Renewal) {
				mu.Lock()
				defer mu.Unlock()
				for _, id := range r.Lost {
					lost[id] = true
				}
				for id := range lost {
					if !slices.Contains(r.Lost, id) {
						r.Lost = append(r.Lost, id)
					}
				}
			})()
		},
	},
	{
		Name:   "LossesToAll",
		Breaks: "who knows it can release the claim",
		Want:   "want that Lost names claims of its own session alone",
		Fault:  "The channel of losses names the claims of all sessions that leave, with their secret IDs.",
		new: func() *fault {
			var all losses
			f := all.fault()
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if held {
					all.tell(c.ID, func(other *session) bool { return other != s })
				}
				return held, err
			}
			return f
		},
	},
	{
		Name:   "LossOfWaiters",
		Breaks: "whose store says by itself that a claim is gone or broken",
		Want:   "want that Lost does not name a claim that waits and stands",
		Fault:  "The channel of losses names claims that wait.",
		new: func() *fault {
			var all losses
			f := all.fault()
			f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && !g.Held && c.Queue {
					all.tell(c.ID, func(other *session) bool { return other == s })
				}
				return g, err
			}
			return f
		},
	},
	{
		Name: "LossOfTheRenewed", Law: "Law04_OnceHeld", Says: "its session is told that this mutex is lost although it was neither released nor broken: c",
		Fault: "The channel of losses names each claim that is renewed, since its record was written.",
		new: func() *fault {
			var all losses
			f := all.fault()
			f.renew = func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				for _, c := range s.all() {
					if s.known(c.ID).Held {
						all.tell(c.ID, func(other *session) bool { return other == s })
					}
				}
				return r, err
			}
			return f
		},
	},
	{
		Name:   "BreakClosesLosses",
		Breaks: "the channel is closed when the session is lost as a whole",
		Want:   "break one of two claims and want that Lost stays open",
		Fault:  "The channel of losses is closed when one claim of the session was broken.",
		new: func() *fault {
			var all losses
			known := &owned{}
			f := all.fault()
			f.acquire = known.acquire
			f.breaks = func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
				err := l.memory.Break(ctx, name, publicID, fence, now)
				if _, s, _ := known.claim(publicID); err == nil && s != nil {
					all.close(s)
				}
				return err
			}
			return f
		},
	},
	{
		Name:   "TimeoutClosesLosses",
		Breaks: "the channel is closed when the session is lost as a whole",
		Want:   "stall a Renew until its context ends and want that Lost stays open",
		Fault:  "The channel of losses is closed when a Renew was not answered.",
		new: func() *fault {
			var all losses
			f := all.fault()
			f.renew = func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				if err != nil {
					all.close(s)
				}
				return r, err
			}
			return f
		},
	},
	{
		Name:   "ReleaseClosesLosses",
		Breaks: "the channel is closed when the session is lost as a whole",
		Want:   "release the last claim of a session and want that Lost stays open",
		Fault:  "The channel of losses is closed when the last claim of the session was released.",
		new: func() *fault {
			var all losses
			f := all.fault()
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if held && len(s.all()) <= 1 {
					all.close(s)
				}
				return held, err
			}
			return f
		},
	},
	{
		Name: "LossesInANewChannel", Law: "Also_Loss", Says: "Lost or Nudge returned another channel when asked again",
		Fault: "Lost makes a new channel whenever it is called, and what is lost goes to one of them.",
		new: func() *fault {
			return &fault{lost: func(s *session) <-chan string {
				c := make(chan string)
				go func() {
					defer close(c)
					for {
						select {
						case <-s.l.closed:
							return
						case id, ok := <-s.Session.(driver.LossNotifier).Lost():
							if !ok {
								return
							}
							select {
							case c <- id:
							case <-s.l.closed:
								return
							}
						}
					}
				}()
				return c
			}}
		},
	},
	{
		Name:   "GoneIsWaiting",
		Breaks: "it answers ErrBroken or ErrGone, and so does Wait",
		Want:   "call Wait of a claim that has expired",
		Fault:  "Wait of a claim that has expired sleeps on: there is no record that could change.",
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
		Name:   "WaitOfTheGoneIsUnknown",
		Breaks: "it answers ErrBroken or ErrGone, and so does Wait",
		Want:   "call Wait of a claim that has expired and look at the class of its error",
		Fault:  "Wait of a claim that has expired is an error that says nothing.",
		new:    func() *fault { return &fault{wait: unsaidByWait(driver.ErrGone)} },
	},
	{
		Name: "WaitOfTheBrokenIsUnknown", Law: "Law15_Break", Says: "a Wait under way, whose claim waited and was broken, answered error: no row (outcome",
		Fault: "Wait of a claim that was broken is an error that says nothing.",
		new:   func() *fault { return &fault{wait: unsaidByWait(driver.ErrBroken)} },
	},
	{
		Name:   "BrokenWaiterIsLost",
		Breaks: "Final for the claim, not for its session.",
		Want:   "want that the error of a broken claim does not match ErrSessionLost",
		Fault:  "Acquire of a claim that was broken says that the session is lost.",
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
		Name:   "GoneWaiterComesAgain",
		Breaks: "A claim that was in line, as far as this driver was told, and is gone is not put there again",
		Want:   "let a claim expire while it waits and ask for it again",
		Fault:  "A claim that expired while it waited is put in line again when it is asked for.",
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

// losses has a channel of its own for each session, behind the one that memlock has.
type losses struct {
	mu  sync.Mutex
	own map[*session]*loss
}

type loss struct {
	to     chan string
	closed bool
}

func (k *losses) fault() *fault {
	return &fault{
		open: func(s *session) {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.own == nil {
				k.own = map[*session]*loss{}
			}
			k.own[s] = &loss{to: make(chan string, 10000)}
			go func() {
				for id := range s.Session.(driver.LossNotifier).Lost() {
					k.tell(id, func(other *session) bool { return other == s })
				}
				k.close(s)
			}()
		},
		lost: func(s *session) <-chan string {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.own[s].to
		},
	}
}

func (k *losses) tell(id string, to func(*session) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, c := range k.own {
		if to(s) && !c.closed {
			select {
			case c.to <- id:
			default:
			}
		}
	}
}

func (k *losses) close(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.own[s]; !c.closed {
		c.closed = true
		close(c.to)
	}
}
