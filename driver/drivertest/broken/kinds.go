package broken

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// kinds are faults that spare the mutex, or the first claims of a session, or the first time-to-live: whoever tries one
// mutex for a second sees nothing.
var kinds = []Driver{
	{
		Name: "TokenAgainAfterExpiry", Law: "Law05_Tokens", Says: "after the expiry of",
		Fault: "The token is drawn by a release, so whoever is let in by an expiry has the same one again.",
		new:   tokenAgainAfterExpiry,
	},
	{
		Name: "WriteTokenIsConstant", Law: "Law05_Tokens", Says: `write, try on "tokens-write`,
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
}

// apartFault is a store that keeps kinds apart, as it says.
func apartFault() *fault { return kindsApart(driver.Mutex, driver.Write, driver.Read)() }

// telling passes every answer of Acquire and Wait on through of.
func telling(f *fault, of func(*session, driver.Claim, driver.Grant) driver.Grant) *fault {
	acquire := f.acquire
	if acquire == nil {
		acquire = (*session).acquire
	}
	f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := acquire(s, ctx, c)
		if err != nil {
			return g, err
		}
		return of(s, c, g), nil
	}
	f.wait = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := s.Session.Wait(ctx, c)
		if err != nil {
			return g, err
		}
		return of(s, c, g), nil
	}
	return f
}

// tokenAgainAfterExpiry tells the token of the last grant of a name again, unless somebody has taken its claim out.
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
