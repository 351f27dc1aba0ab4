package broken

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreSessions are faults about sessions: several of a driver, their times, their renewal and their end.
var moreSessions = []Driver{
	{
		Name:   "FirstTTLForAll",
		Breaks: "what was given is Session.Valid",
		Want:   "open two sessions of one driver with different times, and let the one with the longer time expire",
		Fault:  "All sessions of a driver have the time of its first one, and say the one that was asked for.",
		new: func() *fault {
			var mu sync.Mutex
			first := map[*layer]time.Duration{}
			return &fault{
				opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
					mu.Lock()
					if first[l] == 0 {
						first[l] = spec.TTL
					}
					spec.TTL = first[l]
					mu.Unlock()
					return l.memory.Open(ctx, spec)
				},
				validIn: func(s *session, _ time.Duration) time.Duration { return s.spec.TTL },
			}
		},
	},
	{
		Name:   "RenewsTheOthers",
		Breaks: "claims of a session that is not renewed go after its time",
		Want:   "let one session of a driver expire while another one of it is renewed",
		Fault:  "Renew of one session renews all of its driver: one that was given up goes on.",
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
		Name: "IdleSessionGoes", Law: "Law04_OnceHeld", Says: "and got an error although nothing was wrong",
		Fault: "Renew renews claims, so a session without any is over after twice its time.",
		new: func() *fault {
			var busy stale
			return &fault{
				open: busy.note,
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					if len(s.all()) > 0 {
						busy.note(s)
					}
					return s.Session.Renew(ctx)
				},
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					if busy.is(s) && len(s.all()) == 0 {
						return driver.Grant{}, driver.ErrSessionLost
					}
					busy.note(s)
					return s.acquire(ctx, c)
				},
			}
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
		Name:   "ValidRunsDown",
		Breaks: "Valid is how long the session can be trusted from the start of Open on",
		Want:   "ask Valid again later, before the first Renew, and want the same",
		Fault:  "Valid is what is left of the session's time, and not what was given.",
		new: func() *fault {
			var opened stale
			return &fault{
				open: opened.note,
				validIn: func(s *session, d time.Duration) time.Duration {
					opened.mu.Lock()
					defer opened.mu.Unlock()
					return d - time.Since(opened.renewed[s])
				},
			}
		},
	},
	{
		Name: "AlmostAsLong", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "Valid is a twentieth more than the store gives.",
		new:   func() *fault { return &fault{valid: func(d time.Duration) time.Duration { return d + d/20 }} },
	},
	{
		Name: "AlmostAsShort", Law: "Law08_Expiry", Says: "too late",
		Fault: "Valid is a twentieth less than the store gives, and the traits have no grain.",
		new:   func() *fault { return &fault{valid: func(d time.Duration) time.Duration { return d - d/20 }} },
	},
	{
		Name: "SecondOpenEndsFirst", Law: "Law03_OneSession", Says: "and got an error although nothing was wrong",
		Fault: "A driver has one session: the next one that it opens ends the one before.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				l.memory.EndSessions()
				return l.memory.Open(ctx, spec)
			}}
		},
	},
	{
		Name:   "OneOwnerForAll",
		Breaks: "Owner Owner // who, for people",
		Want:   "look at the claims of two sessions of one driver with different owners",
		Fault:  "All sessions of a driver have the owner of its first one.",
		new: func() *fault {
			var mu sync.Mutex
			first := map[*layer]driver.Owner{}
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				mu.Lock()
				if _, known := first[l]; !known {
					first[l] = spec.Owner
				}
				spec.Owner = first[l]
				mu.Unlock()
				return l.memory.Open(ctx, spec)
			}}
		},
	},
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
		Name:   "CloseAfterWait",
		Breaks: "also while other calls are under way",
		Want:   "close a session while a Wait of it is under way, and bound how long that takes",
		Fault:  "Close waits until the calls that are under way are back.",
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
		Name:   "CloseEndsOtherWaits",
		Breaks: "ErrSessionLost: the session is over, and all its claims with it. Final.",
		Want:   "close one session of a driver while a Wait of another one is under way",
		Fault:  "Close of one session ends the waits of the other sessions of its driver, as if they were over.",
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
		Name:   "AsksAfterClose",
		Breaks: "Close releases every claim of the session, handing over at once, and ends it.",
		Want:   "count the calls of a driver for some times-to-live after its sessions were closed",
		Fault:  "A closed session goes on asking the store, from a goroutine that nobody ends.",
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
		Name: "OpensLater", Law: "Law02_Idempotence", Says: "was answered over a stalled wire: the harness does not stall, or the driver answers for",
		Fault: "Open answers at once, and the store hears of the session with its first request.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				return l.memory.Share().Open(ctx, spec)
			}}
		},
	},
	{
		Name:   "PoolOfTen",
		Breaks: "It never queues behind claims",
		Want:   "renew a session of which a hundred Waits are under way",
		Fault:  "A driver has ten connections and each Wait takes one: with ten who wait, Renew and Release stand behind them.",
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
		Name:   "WaitsBehindWait",
		Breaks: "All methods may be called concurrently",
		Want:   "have two Waits of a session under way, and let the second one's claim in first",
		Fault:  "A session has one subscription, so the second Wait stands behind the first.",
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
		Name:   "OpensBehindWait",
		Breaks: "All methods may be called concurrently",
		Want:   "open a session of a driver while a Wait of another of its sessions is under way",
		Fault:  "A driver is under a lock that Wait keeps, so no other session can be opened.",
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
		Name:   "OneRenewAtATime",
		Breaks: "All methods may be called concurrently, Renew at any time",
		Want:   "call Renew twice at a time and want two answers",
		Fault:  "A Renew while another one is under way is an error.",
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
		Name:   "RenewHoldsAcquire",
		Breaks: "Each call returns promptly when its context ends.",
		Want:   "stall a Renew under a long context and call Acquire under a short one beside it",
		Fault:  "Acquire stands behind a Renew whose answer does not come.",
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
	{
		Name: "DeadWaitersStay", Law: "Law08_Expiry", Says: "and was not told that it holds",
		Fault: "A claim that waits has no time, and the one of a dead process is granted.",
		new: func() *fault {
			return besides(time.Hour, func(s *session, c driver.Claim, _ int) bool {
				return c.Queue && len(s.l.look(c.Name).Claims) > 0
			})
		},
	},
	{
		Name: "WaitersAreNotRenewed", Law: "Law08_Expiry", Says: "too late",
		Fault: "A claim that was granted after a wait is renewed by nobody.",
		new: func() *fault {
			return besides(5*time.Second, func(s *session, c driver.Claim, _ int) bool {
				return c.Queue && len(s.l.look(c.Name).Claims) > 0
			})
		},
	},
}
