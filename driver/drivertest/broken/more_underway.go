package broken

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// moreUnderWay are faults that show only while a Wait is under way.
var moreUnderWay = []Driver{
	{
		Name: "TokenOfTheHolderBefore", Law: "Law05_Tokens", Says: "while Wait was asking: want at least",
		Fault: "A claim that is granted while its Wait is asking gets the token of the holder before it from Wait.",
		new: func() *fault {
			var mu sync.Mutex
			last := map[string]uint64{}
			swap := func(name string, fence uint64) (before uint64) {
				mu.Lock()
				defer mu.Unlock()
				before, last[name] = last[name], fence
				return before
			}
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := s.acquire(ctx, c)
					if err == nil && g.Fence != 0 {
						swap(c.Name, g.Fence)
					}
					return g, err
				},
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					had := s.has(c)
					g, err := s.Session.Wait(ctx, c)
					if err == nil && g.Fence != 0 {
						if before := swap(c.Name, g.Fence); !had && before != 0 {
							g.Fence = before
						}
					}
					return g, err
				},
			}
		},
	},
	{
		Name: "AcquiresBehindWait", Law: "Also_Parallel", Says: "Acquire was not answered while a Wait of another claim of its session was under way",
		Fault: "A Wait has its session's connection to itself, and Acquire of another claim stands behind it.",
		new: func() *fault {
			w, f := aloneInWait()
			f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if err := w.lock(ctx, s.spec.ID); err != nil {
					return driver.Grant{}, err
				}
				defer w.unlock(s.spec.ID)
				return s.acquire(ctx, c)
			}
			return f
		},
	},
	{
		Name: "ReleasesBehindWait", Law: "Also_Parallel", Says: "Release was not answered while a Wait of another claim of its session was under way",
		Fault: "A Wait has its session's connection to itself, and Release of another claim stands behind it.",
		new: func() *fault {
			w, f := aloneInWait()
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				if err := w.lock(ctx, s.spec.ID); err != nil {
					return false, err
				}
				defer w.unlock(s.spec.ID)
				return s.Session.Release(ctx, c)
			}
			return f
		},
	},
	{
		Name: "DeafToClose", Law: "Law12_Close", Says: "after Close of the session that held",
		Fault: "A Wait that is under way in another process sleeps through the Close of the holder's session, to the next Renew.",
		new: func() *fault {
			var mu sync.Mutex
			closed := map[string]int{}
			count := func(name string, n int) int {
				mu.Lock()
				defer mu.Unlock()
				closed[name] += n
				return closed[name]
			}
			return &fault{
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					before := count(c.Name, 0)
					g, err := s.Session.Wait(ctx, c)
					if err == nil && g.Held && count(c.Name, 0) != before {
						return g, s.untilRenewed(ctx)
					}
					return g, err
				},
				close: func(s *session, ctx context.Context) error {
					for _, c := range s.all() {
						count(c.Name, 1)
					}
					return s.Session.Close(ctx)
				},
			}
		},
	},
}

// aloneInWait is a Wait that has a lock of its session.
func aloneInWait() (*writers, *fault) {
	w := &writers{held: map[string]chan struct{}{}}
	return w, &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if err := w.lock(ctx, s.spec.ID); err != nil {
			return driver.Grant{}, err
		}
		defer w.unlock(s.spec.ID)
		return s.Session.Wait(ctx, c)
	}}
}
