package broken

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreBeside are faults about calls beside each other.
var moreBeside = []Driver{
	{
		Name: "PoolOfTen", Law: "Law16_RenewBounded", Says: "while 100 Waits of its session were under way",
		Fault: "A driver has ten connections and each Wait takes one: with ten who wait, Renew and Release stand behind them.",
		new: func() *fault {
			w := &writers{held: map[string]chan struct{}{}}
			var mu sync.Mutex
			names := map[*layer]int64{}
			var n atomic.Int64
			enter := func(l *layer, ctx context.Context) (chan struct{}, error) {
				mu.Lock()
				if names[l] == 0 {
					names[l] = n.Add(1)
				}
				key := string(rune(names[l]))
				mu.Unlock()
				w.mu.Lock()
				if w.held[key] == nil {
					w.held[key] = make(chan struct{}, 10)
				}
				pool := w.held[key]
				w.mu.Unlock()
				select {
				case pool <- struct{}{}:
					return pool, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return &fault{
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					pool, err := enter(s.l, ctx)
					if err != nil {
						return driver.Grant{}, err
					}
					defer func() { <-pool }()
					return s.Session.Wait(ctx, c)
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					pool, err := enter(s.l, ctx)
					if err != nil {
						return false, err
					}
					defer func() { <-pool }()
					return s.Session.Release(ctx, c)
				},
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					pool, err := enter(s.l, ctx)
					if err != nil {
						return driver.Renewal{}, err
					}
					defer func() { <-pool }()
					return s.Session.Renew(ctx)
				},
			}
		},
	},
	{
		Name: "WaitsBehindWait", Law: "Law06_WakeUp", Says: "with two Waits of its session under way",
		Fault: "A session has one subscription, so the second Wait stands behind the first.",
		new: func() *fault {
			w := &writers{held: map[string]chan struct{}{}}
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if err := w.lock(ctx, s.spec.ID); err != nil {
					return driver.Grant{}, err
				}
				defer w.unlock(s.spec.ID)
				return s.Session.Wait(ctx, c)
			}}
		},
	},
	{
		Name: "OpensBehindWait", Law: "Law12_Close", Says: "could not open a session: context deadline exceeded, while a Wait of another session",
		Fault: "A driver is under a lock that Wait keeps, so no other session can be opened.",
		new: func() *fault {
			var mu sync.Mutex
			locks := map[*layer]chan struct{}{}
			at := func(l *layer) chan struct{} {
				mu.Lock()
				defer mu.Unlock()
				if locks[l] == nil {
					locks[l] = make(chan struct{}, 1000)
				}
				return locks[l]
			}
			return &fault{
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					at(s.l) <- struct{}{}
					defer func() { <-at(s.l) }()
					return s.Session.Wait(ctx, c)
				},
				opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
					for len(at(l)) > 0 {
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-time.After(10 * time.Millisecond):
						}
					}
					return l.memory.Open(ctx, spec)
				},
			}
		},
	},
	{
		Name: "OneRenewAtATime", Law: "Also_Parallel", Says: "a renewal is under way, while others were under way",
		Fault: "A Renew while another one is under way is an error.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				if s.mark("renew", true) {
					return driver.Renewal{}, errors.New("a renewal is under way")
				}
				defer s.mark("renew", false)
				time.Sleep(time.Millisecond)
				return s.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "RenewHoldsAcquire", Law: "Also_Contexts", Says: "beside a Renew that is not answered",
		Fault: "Acquire stands behind a Renew whose answer does not come.",
		new: func() *fault {
			w := &writers{held: map[string]chan struct{}{}}
			return &fault{
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					if err := w.lock(ctx, s.spec.ID); err != nil {
						return driver.Renewal{}, err
					}
					defer w.unlock(s.spec.ID)
					return s.Session.Renew(ctx)
				},
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					if err := w.lock(s.l.endless(ctx), s.spec.ID); err != nil {
						return driver.Grant{}, err
					}
					defer w.unlock(s.spec.ID)
					return s.acquire(ctx, c)
				},
			}
		},
	},
}
