package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreClosing are faults about the end of sessions, by Close or by the store.
var moreClosing = []Driver{
	{
		Name: "CloseLeavesWaiters", Law: "Law07_NoHole", Says: "and was not told that it holds",
		Fault: "Close releases what the session holds, and what waits stays in line until its time is over.",
		new: func() *fault {
			f := closing(nil)
			f.close = func(s *session, ctx context.Context) error {
				s.mu.Lock()
				s.over = true
				s.mu.Unlock()
				for _, c := range s.all() {
					if s.known(c.ID).Held {
						if _, err := s.Session.Release(ctx, c); err != nil {
							return err
						}
					}
				}
				return nil
			}
			return f
		},
	},
	{
		Name: "CloseAfterWait", Law: "Law12_Close", Says: "while a Wait of it was under way",
		Fault: "Close waits until the calls that are under way are back.",
		new: func() *fault {
			var mu sync.Mutex
			under := map[*session]int{}
			count := func(s *session, n int) int {
				mu.Lock()
				defer mu.Unlock()
				under[s] += n
				return under[s]
			}
			return &fault{
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					count(s, 1)
					defer count(s, -1)
					return s.Session.Wait(ctx, c)
				},
				close: func(s *session, ctx context.Context) error {
					for count(s, 0) > 0 {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(10 * time.Millisecond):
						}
					}
					return s.Session.Close(ctx)
				},
			}
		},
	},
	{
		Name: "SleepsThroughClose", Law: "Also_Loss", Says: "Wait in a session that the store ended answered error: context deadline exceeded (outcome",
		Fault: "A Wait that is under way when its session is closed sleeps on.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if errors.Is(err, driver.ErrSessionLost) && ctx.Err() == nil {
					<-ctx.Done()
					return g, ctx.Err()
				}
				return g, err
			}}
		},
	},
	{
		Name: "CloseEndsOtherWaits", Law: "Law12_Close", Says: "although only another session of its driver was closed",
		Fault: "Close of one session ends the waits of the other sessions of its driver, as if they were over.",
		new: func() *fault {
			var mu sync.Mutex
			closed := map[*layer]chan struct{}{}
			at := func(l *layer) chan struct{} {
				mu.Lock()
				defer mu.Unlock()
				if closed[l] == nil {
					closed[l] = make(chan struct{})
				}
				return closed[l]
			}
			return &fault{
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					all := at(s.l)
					wait, cancel := context.WithCancel(ctx)
					defer cancel()
					go func() {
						select {
						case <-all:
							cancel()
						case <-wait.Done():
						}
					}()
					g, err := s.Session.Wait(wait, c)
					if err != nil && ctx.Err() == nil && wait.Err() != nil {
						err = driver.ErrSessionLost
					}
					return g, err
				},
				close: func(s *session, ctx context.Context) error {
					err := s.Session.Close(ctx)
					all := at(s.l)
					mu.Lock()
					defer mu.Unlock()
					select {
					case <-all:
					default:
						close(all)
					}
					closed[s.l] = make(chan struct{})
					return err
				},
			}
		},
	},
	{
		Name: "DriverLeavesSessions", Law: "Law12_Close", Says: "and was not told that it holds",
		Fault: "Close of a driver closes its connections, and leaves its sessions to expire.",
		new:   func() *fault { return &fault{closes: func(*layer, context.Context) error { return nil }} },
	},
	{
		Name: "DriverClosesSlowly", Law: "Law12_Close", Says: "and was not told that it holds",
		Fault: "Close of a driver does not look at its context, and takes ten seconds.",
		new: func() *fault {
			return &fault{closes: func(l *layer, ctx context.Context) error {
				time.Sleep(10 * time.Second)
				return l.memory.Close(ctx)
			}}
		},
	},
	{
		Name: "ClosedIsUnknown", Law: "Law12_Close", Says: "want an error that matches ErrSessionLost or ErrNotSent",
		Fault: "Acquire in a session that was closed is an error of the client's.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if errors.Is(err, driver.ErrSessionLost) {
					err = errors.New("closed pool")
				}
				return g, err
			}}
		},
	},
	{
		Name: "ClosedWithDriverIsUnknown", Law: "Law12_Close", Says: "after Close of the driver Close of the session failed: closed pool: want nil",
		Fault: "Close of a session whose driver was closed is an error of the client's.",
		new: func() *fault {
			return &fault{close: func(s *session, ctx context.Context) error {
				select {
				case <-s.l.closed:
					return errors.New("closed pool")
				default:
					return s.Session.Close(ctx)
				}
			}}
		},
	},
	{
		Name: "ClosedRenews", Law: "Law12_Close", Says: "a Renew of it was answered with valid 20s: want an error",
		Fault: "Renew of a closed session has nothing to renew, and says that all is well.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				if errors.Is(err, driver.ErrSessionLost) && s.isMarked("closed") {
					return driver.Renewal{Valid: s.Valid()}, nil
				}
				return r, err
			}, close: func(s *session, ctx context.Context) error {
				s.mark("closed", true)
				return s.Session.Close(ctx)
			}}
		},
	},
	{
		Name: "ClosedWaitIsUnknown", Law: "Law12_Close", Says: "a Wait of it was answered with error: closed pool",
		Fault: "Wait in a session that was closed is an error of the client's.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if errors.Is(err, driver.ErrSessionLost) && s.isMarked("closed") {
					err = errors.New("closed pool")
				}
				return g, err
			}, close: func(s *session, ctx context.Context) error {
				s.mark("closed", true)
				return s.Session.Close(ctx)
			}}
		},
	},
	{
		Name: "AsksAfterClose", Law: "Law10_Quiet", Says: "a driver whose only session was closed made",
		Fault: "A closed session goes on asking the store, from a goroutine that nobody ends.",
		new: func() *fault {
			return &fault{close: func(s *session, ctx context.Context) error {
				go func() {
					for range 50 {
						select {
						case <-s.l.closed:
							return
						case <-time.After(s.Session.Valid() / 3):
						}
						late, cancel := context.WithTimeout(context.Background(), time.Millisecond)
						_, _ = s.Session.Renew(late)
						cancel()
					}
				}()
				return s.Session.Close(ctx)
			}}
		},
	},
	{
		Name: "OpensAgain", Law: "Also_Loss", Says: "Acquire in a session that the store ended answered not held, mutex",
		Fault: "A session that the store has ended is opened again when a claim is asked for, and nobody hears of it.",
		new: func() *fault {
			var mu sync.Mutex
			again := map[*session]driver.Session{}
			of := func(s *session) driver.Session {
				mu.Lock()
				defer mu.Unlock()
				if again[s] != nil {
					return again[s]
				}
				return s.Session
			}
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := of(s).Acquire(ctx, c)
					if s.isMarked("closed") || !errors.Is(err, driver.ErrSessionLost) {
						return g, err
					}
					other, err := s.l.memory.Open(ctx, s.spec)
					if err != nil {
						return driver.Grant{}, err
					}
					mu.Lock()
					again[s] = other
					mu.Unlock()
					return other.Acquire(ctx, c)
				},
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					return of(s).Wait(ctx, c)
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) { return of(s).Release(ctx, c) },
				renew:   func(s *session, ctx context.Context) (driver.Renewal, error) { return of(s).Renew(ctx) },
				close: func(s *session, ctx context.Context) error {
					s.mark("closed", true)
					return of(s).Close(ctx)
				},
			}
		},
	},
	{
		Name: "EndedIsGone", Law: "Also_Loss", Says: "Acquire in a session that the store ended answered error: claim gone from the store (is",
		Fault: "Acquire in a session that the store has ended says that the claim is gone, as if the session went on.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if errors.Is(err, driver.ErrSessionLost) {
					err = driver.ErrGone
				}
				return g, err
			}}
		},
	},
	{
		Name: "WaitOfTheEndedIsUnknown", Law: "Also_Loss", Says: "Wait in a session that the store ended answered error: no row (outcome unknown): want",
		Fault: "Wait in a session that the store has ended is an error that says nothing, at once, for ever.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if errors.Is(err, driver.ErrSessionLost) {
					err = errors.New("no row")
				}
				return g, err
			}}
		},
	},
}
