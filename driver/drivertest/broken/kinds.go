package broken

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// kinds are faults that spare the mutex, or the first claims of a session, or the first
// time-to-live: a test of one mutex for a second sees nothing.
var kinds = []Driver{
	{
		Name: "TokenAgainAfterExpiry", Law: "Law05_Tokens", Says: "after the expiry of",
		Fault: "The token is drawn by a release, so whoever is let in by an expiry has the same one again.",
		new:   tokenAgainAfterExpiry,
	},
	{
		Name: "WriteTokenIsConstant", Law: "Law05_Tokens", Says: ": write, try on … with the token 2251799813685248, after … with 2251799813685248",
		Fault: "A store that keeps kinds apart has a counter for mutexes, and every write lock has the same token.",
		new: func() *fault {
			return telling(apartFault(), func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
				if c.Kind == driver.Write && g.Fence != 0 {
					g.Fence = 1 << 51
				}
				return g
			})
		},
		twin: apartFault,
	},
	{
		Name: "RenewsNoWrites", Law: "Law04_OnceHeld", Says: "although this write was neither released nor broken and its session was renewed in time",
		Fault: "Renew walks the mutexes: the record of a write lock runs out one time after it was taken.",
		new:   unrenewed(driver.Write),
	},
	{
		Name: "RenewsNoReads", Law: "Law04_OnceHeld", Says: "although this read was neither released nor broken and its session was renewed in time",
		Fault: "Renew walks the holders of the exclusive kinds: a reader's time is over one time after it came.",
		new:   unrenewed(driver.Read),
	},
	{
		Name: "RenewsNoPermits", Law: "Law04_OnceHeld", Says: "although this permit was neither released nor broken and its session was renewed in time",
		Fault: "Renew does not reach the set in which permits stand.",
		new:   unrenewed(driver.Permit),
	},
	{
		Name: "RenewsAHundred", Law: "Law04_OnceHeld", Says: "of 250 claims",
		Fault: "Renew sends one page: the claims beyond the first hundred of a session are not renewed.",
		new: func() *fault {
			return besides(0, func(_ *session, _ driver.Claim, before int) bool { return before >= 100 })
		},
	},
	{
		Name: "ReadsNeverExpire", Law: "Law08_Expiry", Says: "was not told that it holds after the time of …: read … was over",
		Fault: "A reader has no time: one that died keeps writers out for ever.",
		new: func() *fault {
			return besides(time.Hour, func(_ *session, c driver.Claim, _ int) bool { return c.Kind == driver.Read })
		},
	},
	{
		Name: "AcquiresInVain", Law: "Law08_Expiry", Says: "in a session that nobody had renewed for",
		Fault: "Acquire in a session whose time is over answers held, and the claim goes with the session when somebody looks.",
		new:   acquiresInVain,
	},
	{
		Name: "BreaksNoReads", Law: "Law15_Break", Says: "a read was broken and its owner was neither nudged nor told",
		Fault: "Break of a read claim answers that it is done, and does nothing.",
		new:   breaksNot(driver.Read),
	},
	{
		Name: "SleepsThroughBreak", Law: "Law15_Break", Says: "a Wait under way sleeps through the Break of its claim",
		Fault: "A Wait that is under way when its claim is broken sleeps on: only the next one says so.",
		new:   sleepsThroughBreak,
	},
	{
		Name: "BreaksAllReaders", Law: "Law15_Break", Says: `read, try on "break-alone`,
		Fault: "Break deletes the readers of the name, of which one was named.",
		new:   breaksAllReaders,
	},
	{
		Name: "NudgesBeforeWaiters", Law: "Law15_Break", Says: "was broken and its owner was neither nudged nor told",
		Fault: "A claim listens when somebody stands behind it: the Break of one that is alone nudges nobody.",
		new:   nudgesBeforeWaiters,
	},
}

// tokenAgainAfterExpiry tells the token of the last grant of a name again, unless somebody has
// taken its claim out.
func tokenAgainAfterExpiry() *fault {
	type grant struct {
		id   string
		told uint64
		left bool
	}
	var mu sync.Mutex
	last := map[string]grant{}
	leaves := func(of func(name string, g grant) bool) {
		mu.Lock()
		defer mu.Unlock()
		for name, g := range last {
			if of(name, g) {
				g.left = true
				last[name] = g
			}
		}
	}
	f := telling(&fault{}, func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
		if g.Fence == 0 {
			return g
		}
		mu.Lock()
		defer mu.Unlock()
		switch before, known := last[c.Name]; {
		case !known || before.left:
			last[c.Name] = grant{id: c.ID, told: g.Fence}
		case before.id != c.ID:
			last[c.Name] = grant{id: c.ID, told: before.told}
		}
		g.Fence = last[c.Name].told
		return g
	})
	f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
		leaves(func(_ string, g grant) bool { return g.id == c.ID })
		return s.Session.Release(ctx, c)
	}
	f.requeue = func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
		leaves(func(_ string, g grant) bool { return g.id == old.ID })
		return s.Session.(driver.Requeuer).Requeue(ctx, old, next)
	}
	f.close = func(s *session, ctx context.Context) error {
		for _, c := range s.all() {
			leaves(func(_ string, g grant) bool { return g.id == c.ID })
		}
		return s.Session.Close(ctx)
	}
	f.breaks = func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
		leaves(func(of string, _ grant) bool { return of == name })
		return l.memory.Break(ctx, name, publicID, fence, now)
	}
	return f
}

// unrenewed is a fault whose Renew does not reach the claims of a kind.
func unrenewed(kind driver.Kind) func() *fault {
	return func() *fault {
		return besides(0, func(_ *session, c driver.Claim, _ int) bool { return c.Kind == kind })
	}
}

// acquiresInVain answers held in a session whose time is over without a claim that would last.
func acquiresInVain() *fault {
	k := &stale{}
	return &fault{
		open:  k.note,
		renew: k.renew,
		acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			over := k.is(s)
			g, err := s.acquire(ctx, c)
			if err == nil && g.Held && over {
				_, _ = s.Session.Release(ctx, c) // the next Acquire drops the claims of sessions that are over
			}
			return g, err
		},
	}
}

// sleepsThroughBreak is a Wait that is under way and does not look at what was broken.
func sleepsThroughBreak() *fault {
	return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Session.Wait(over, c); errors.Is(err, driver.ErrBroken) {
			return driver.Grant{}, err // what was known before
		}
		g, err := s.Session.Wait(ctx, c)
		if errors.Is(err, driver.ErrBroken) {
			<-ctx.Done()
			return driver.Grant{}, ctx.Err()
		}
		return g, err
	}}
}

// breaksNot answers that a claim of the kind is broken, and it goes on.
func breaksNot(kind driver.Kind) func() *fault {
	return func() *fault {
		return &fault{breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
			line, err := l.memory.Line(ctx, name)
			if err != nil {
				return err
			}
			for _, h := range line.Claims {
				if h.PublicID == publicID && h.Fence == fence && h.Kind == kind {
					return nil
				}
			}
			return l.memory.Break(ctx, name, publicID, fence, now)
		}}
	}
}

// breaksAllReaders breaks the readers that share with a reader.
func breaksAllReaders() *fault {
	return &fault{breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
		line, err := l.memory.Line(ctx, name)
		if err != nil {
			return err
		}
		if err := l.memory.Break(ctx, name, publicID, fence, now); err != nil {
			return err
		}
		reads := false
		for _, h := range line.Claims {
			reads = reads || h.PublicID == publicID && h.Kind == driver.Read && h.Held
		}
		for _, h := range line.Claims {
			if reads && h.Kind == driver.Read && h.Held && h.PublicID != publicID {
				_ = l.memory.Break(ctx, name, h.PublicID, h.Fence, now) // may have left
			}
		}
		return nil
	}}
}

// nudgesBeforeWaiters takes back the nudge for a claim that nobody waits for.
func nudgesBeforeWaiters() *fault {
	var mu sync.Mutex
	var sessions []*session
	return &fault{
		open: func(s *session) {
			mu.Lock()
			defer mu.Unlock()
			sessions = append(sessions, s)
		},
		breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
			line, err := l.memory.Line(ctx, name)
			if err != nil {
				return err
			}
			if err := l.memory.Break(ctx, name, publicID, fence, now); err != nil {
				return err
			}
			if slices.ContainsFunc(line.Claims, func(h driver.Holder) bool { return !h.Held }) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range sessions {
				if slices.ContainsFunc(s.all(), func(c driver.Claim) bool { return driver.PublicID(c.ID) == publicID }) {
					select {
					case <-s.Nudge():
					default:
					}
				}
			}
			return nil
		},
	}
}
