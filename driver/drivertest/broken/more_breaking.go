package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreBreaking are faults about Break.
var moreBreaking = []Driver{
	{
		Name: "BreaksNoWaiters", Law: "Law15_Break", Says: "a mutex was broken and its owner was neither nudged nor told: c",
		Fault: "Break of a claim that waits answers that it is done, and does nothing.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if h.PublicID != "" && !h.Held && h.Fence == b.fence {
				return nil
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "MarksWaiters", Law: "Law15_Break", Says: "a mutex was broken and its owner was neither nudged nor told: c",
		Fault: "Break of a claim that waits marks it, and it leaves when it is granted.",
		new: func() *fault {
			var mu sync.Mutex
			marked := map[string]bool{}
			f := breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
				if h.PublicID != "" && !h.Held && h.Fence == b.fence {
					mu.Lock()
					defer mu.Unlock()
					marked[h.PublicID] = true
					return nil
				}
				return b.pass(l, ctx)
			})()
			f.wait = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				mu.Lock()
				broken := marked[driver.PublicID(c.ID)]
				mu.Unlock()
				g, err := s.Session.Wait(ctx, c)
				if broken && g.Held {
					_, err = s.Session.Release(ctx, c)
					return driver.Grant{}, errors.Join(driver.ErrBroken, err)
				}
				return g, err
			}
			return f
		},
	},
	{
		Name: "NowOnlyMarks", Law: "Law15_Break", Says: "and was not told that it holds",
		Fault: "Break with now marks the claim as Break without it does.",
		new: breaking(func(l *layer, ctx context.Context, _ driver.Holder, b breakage) error {
			b.now = false
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "NowOnlyMarksSharers", Law: "Law15_Break", Says: "and was not told that it holds",
		Fault: "Break with now of a read or a permit marks it as Break without it does.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			b.now = b.now && h.Kind.Exclusive()
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "AnyTokenOfSharers", Law: "Law15_Break", Says: "Break of a claim that has no token by one answered <nil>: want an error that matches",
		Fault: "Break hits a read or a permit, which has no token, whatever token is named.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if h.PublicID != "" && !h.Kind.Exclusive() {
				b.fence = 0
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "AnyTokenOfWaiters", Law: "Law15_Break", Says: "Break of a waiting claim with the holder's token answered <nil>: want an error that",
		Fault: "Break hits a claim that waits, which has no token, whatever token is named.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if h.PublicID != "" && !h.Held {
				b.fence = 0
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "NoTokenIsAnyToken", Law: "Law15_Break", Says: "Break of a claim with no token answered <nil>: want an error that matches ErrRefused",
		Fault: "Break with the token 0 hits the claim whatever token it has.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if h.PublicID != "" && b.fence == 0 {
				b.fence = h.Fence
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "OlderTokensToo", Law: "Law15_Break", Says: "Break of a claim with another of its tokens answered <nil>: want an error that matches",
		Fault: "Break hits a claim whose token is at least the one named.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if b.fence > h.Fence && h.Fence > 0 {
				b.fence = h.Fence
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "BreaksOnce", Law: "Law15_Break", Says: "which stands as named, failed: refused by the store",
		Fault: "Break with now of a claim that is marked is refused: it is broken already.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if h.Broken {
				return driver.ErrRefused
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "SecondMarkFails", Law: "Law15_Break", Says: "which stands as named, failed: a record of that key stands there",
		Fault: "Break of a claim that is marked is an error that says nothing.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if h.Broken && !b.now {
				return errors.New("a record of that key stands there")
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "NobodyIsBroken", Law: "Law15_Break", Says: "Break of a claim under another name answered <nil>: want an error that matches ErrRefused",
		Fault: "Break in a line where nobody stands answers that it is done.",
		new: breaking(func(l *layer, ctx context.Context, _ driver.Holder, b breakage) error {
			if len(l.look(b.name).Claims) == 0 {
				return nil
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "StrangerIsBroken", Law: "Law15_Break", Says: "Break of a claim that never was answered <nil>: want an error that matches ErrRefused",
		Fault: "Break of a claim that does not stand in the line answers that it is done.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if h.PublicID == "" {
				return nil
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "RefusesWithoutWord", Law: "Law15_Break", Says: "Break of a claim with the token of an earlier one answered no row: want an error that",
		Fault: "Break that hits nothing is an error that says nothing.",
		new: breaking(func(l *layer, ctx context.Context, _ driver.Holder, b breakage) error {
			err := b.pass(l, ctx)
			if errors.Is(err, driver.ErrRefused) {
				err = errors.New("no row")
			}
			return err
		}),
	},
	{
		Name: "BreaksInAnyLine", Law: "Law15_Break", Says: "Break of a claim under another name answered <nil>: want an error that matches ErrRefused",
		Fault: "Break looks for the public id alone, and hits its claim in the line of another name.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			if lines, err := l.memory.Share().Lines(ctx, ""); h.PublicID == "" && err == nil {
				for _, line := range lines {
					if _, ok := find(line, b.publicID); ok {
						b.name = line.Name
					}
				}
			}
			return b.pass(l, ctx)
		}),
	},
	{
		Name: "BreakHandsOver", Law: "Law15_Break", Says: "before the time of",
		Fault: "Break lets the next in after 200 ms, whatever the owner does.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			err := b.pass(l, ctx)
			if err == nil && h.Held && !b.now {
				b.now = true
				time.AfterFunc(200*time.Millisecond, func() { _ = b.pass(l, context.WithoutCancel(ctx)) })
			}
			return err
		}),
	},
	{
		Name: "BrokenWasHeld", Law: "Law15_Break", Says: "which was broken, said that it had been held until now",
		Fault: "Release of a claim that is marked says that it was held until now.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				h, _ := find(s.l.look(c.Name), driver.PublicID(c.ID))
				held, err := s.Session.Release(ctx, c)
				return held || h.Broken && err == nil, err
			}}
		},
	},
	{
		Name: "RequeuedBrokenWasHeld", Law: "Also_Requeue", Says: "which was broken, answered held=true for it and held",
		Fault: "Requeue of a claim that is marked says that it was held until now.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				h, _ := find(s.l.look(old.Name), driver.PublicID(old.ID))
				g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
				return g, held || h.Broken && err == nil, err
			}}
		},
	},
	{
		Name: "NudgesOnce", Law: "Law15_Break", Says: `"break-next-mutex`,
		Fault: "A session is nudged at the first Break of one of its claims, and not at the next.",
		new:   nudging(func(_ *session, n int) bool { return n == 0 }),
	},
	{
		Name: "NudgesInANewChannel", Law: "Also_Loss", Says: "Lost or Nudge returned another channel when asked again",
		Fault: "Nudge makes a new channel whenever it is called, and the value goes to the latest.",
		new: func() *fault {
			var mu sync.Mutex
			latest := map[*session]chan struct{}{}
			return &fault{nudge: func(s *session) <-chan struct{} {
				mu.Lock()
				defer mu.Unlock()
				started := latest[s] != nil
				latest[s] = make(chan struct{}, 1)
				if !started {
					go func() {
						for {
							select {
							case <-s.l.closed:
								return
							case <-s.Session.(driver.Nudger).Nudge():
								mu.Lock()
								latest[s] <- struct{}{}
								mu.Unlock()
							}
						}
					}()
				}
				return latest[s]
			}}
		},
	},
	{
		Name: "MarkOfTheDeadStays", Law: "Law15_Break", Says: "and was not told that it holds",
		Fault: "A claim that is marked is left for its owner to release, and does not expire.",
		new: func() *fault {
			known := &owned{}
			f := breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
				err := b.pass(l, ctx)
				_, s, _ := known.claim(h.PublicID)
				if err != nil || !h.Held || b.now || h.Broken || s == nil {
					return err
				}
				go func() {
					for range 50 {
						select {
						case <-s.l.closed:
							return
						case <-time.After(s.Session.Valid() / 3):
						}
						if _, ok := find(l.look(b.name), b.publicID); !ok {
							return
						}
						late, cancel := context.WithTimeout(context.Background(), time.Millisecond)
						_, _ = s.Session.Renew(late)
						cancel()
					}
				}()
				return nil
			})()
			f.acquire = known.acquire
			return f
		},
	},
	{
		Name: "BreaksForeverHeld", Law: "Law15_Break", Says: "and was not told that it holds",
		Fault: "Break marks the claim, and its Release removes nothing, since the record is the operator's now.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				if h, _ := find(s.l.look(c.Name), driver.PublicID(c.ID)); h.Broken {
					return false, nil
				}
				return s.Session.Release(ctx, c)
			}}
		},
	},
	{
		Name: "BreaksTheNext", Law: "Law15_Break", Says: "failed although nothing was wrong",
		Fault: "Break with now takes out the claim behind, too.",
		new: breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
			line := l.look(b.name)
			err := b.pass(l, ctx)
			for i, o := range line.Claims {
				if err == nil && b.now && i > 0 && line.Claims[i-1].PublicID == h.PublicID {
					now, _ := find(l.look(b.name), o.PublicID)
					_ = l.memory.Break(ctx, b.name, o.PublicID, now.Fence, true)
				}
			}
			return err
		}),
	},
	{
		Name: "BreakEndsTheSession", Law: "Law15_Break", Says: "could not renew",
		Fault: "Break with now ends the session of the claim, and so its other claims.",
		new: func() *fault {
			known := &owned{}
			f := breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
				err := b.pass(l, ctx)
				if _, s, _ := known.claim(h.PublicID); err == nil && b.now && s != nil {
					_ = s.Session.Close(ctx)
				}
				return err
			})()
			f.acquire = known.acquire
			return f
		},
	},
	{
		Name: "BrokenSessionStaysMarked", Law: "Law15_Break", Says: "and got an error although nothing was wrong",
		Fault: "A break is noted for the session, whose later claims of that name are broken, too.",
		new: func() *fault {
			known := &owned{}
			f := breaking(func(l *layer, ctx context.Context, h driver.Holder, b breakage) error {
				err := b.pass(l, ctx)
				if _, s, _ := known.claim(h.PublicID); err == nil && s != nil {
					s.mark(b.name, true)
				}
				return err
			})()
			f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if s.isMarked(c.Name) {
					return driver.Grant{}, driver.ErrBroken
				}
				return known.acquire(s, ctx, c)
			}
			return f
		},
	},
}

// nudging passes the nudges on that passes picks, by how many came before.
func nudging(passes func(s *session, before int) bool) func() *fault {
	return func() *fault {
		var mu sync.Mutex
		own := map[*session]chan struct{}{}
		return &fault{nudge: func(s *session) <-chan struct{} {
			mu.Lock()
			defer mu.Unlock()
			if own[s] == nil {
				c := make(chan struct{}, 1)
				own[s] = c
				go func() {
					for n := 0; ; n++ {
						select {
						case <-s.l.closed:
							return
						case <-s.Session.(driver.Nudger).Nudge():
						}
						if passes(s, n) {
							select {
							case c <- struct{}{}:
							default:
							}
						}
					}
				}()
			}
			return own[s]
		}}
	}
}
