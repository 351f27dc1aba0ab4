package broken

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// moreLosses are faults about the channel that says which claims are gone.
var moreLosses = []Driver{
	{
		Name: "LossesToAll", Law: "Also_LostClaims", Says: "the channel Lost names a claim that is another session's",
		Fault: "The channel of losses names the claims of all sessions that leave, with their secret IDs.",
		new: func() *fault {
			var all losses
			f := all.fault()
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if held {
					all.tell(gone(c.ID), func(other *session) bool { return other != s })
				}
				return held, err
			}
			return f
		},
	},
	{
		Name: "LossOfWaiters", Law: "Also_LostClaims", Says: "the channel Lost names a claim that wait",
		Fault: "The channel of losses names claims that wait.",
		new: func() *fault {
			var all losses
			f := all.fault()
			f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && !g.Held && c.Queue {
					all.tell(gone(c.ID), func(other *session) bool { return other == s })
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
						all.tell(gone(c.ID), func(other *session) bool { return other == s })
					}
				}
				return r, err
			}
			return f
		},
	},
	{
		Name: "BreakClosesLosses", Law: "Also_LostClaims", Says: "after the Break of two claims the channel Lost of",
		Fault: "The channel of losses is closed when one claim of the session was broken.",
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
		Name: "TimeoutClosesLosses", Law: "Also_LostClaims", Says: "after a Renew that was not answered in time the channel Lost of",
		Fault: "The channel of losses is closed when a Renew was not answered.",
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
		Name: "ReleaseClosesLosses", Law: "Also_LostClaims", Says: "after the Release of the last claim the channel Lost of A is closed",
		Fault: "The channel of losses is closed when the last claim of the session was released.",
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
			return &fault{lost: func(s *session) <-chan driver.Loss {
				c := make(chan driver.Loss)
				go func() {
					defer close(c)
					for {
						select {
						case <-s.l.closed:
							return
						case l, ok := <-s.Session.(driver.LossNotifier).Lost():
							if !ok {
								return
							}
							select {
							case c <- l:
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
}

// losses has a channel of its own for each session, behind the one that memlock has.
type losses struct {
	mu  sync.Mutex
	own map[*session]*loss
}

type loss struct {
	to     chan driver.Loss
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
			k.own[s] = &loss{to: make(chan driver.Loss, 10000)}
			go func() {
				for l := range s.Session.(driver.LossNotifier).Lost() {
					k.tell(l, func(other *session) bool { return other == s })
				}
				k.close(s)
			}()
		},
		lost: func(s *session) <-chan driver.Loss {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.own[s].to
		},
	}
}

func (k *losses) tell(l driver.Loss, to func(*session) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, c := range k.own {
		if to(s) && !c.closed {
			select {
			case c.to <- l:
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
