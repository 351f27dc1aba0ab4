package broken

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// queueing are the faults about who stands where in a line: laws 1 to 4 and 11.
var queueing = []Driver{
	{
		Name: "ReadersTakeTurns", Law: "Law01_Rule", Says: "although the weights ahead of it leave room",
		Fault: "A read claim is written as a write lock, so readers do not share.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if c.Kind == driver.Read {
					c.Weight = driver.All
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "EveryPermitIsOne", Law: "Law01_Rule", Says: "leave no room",
		Fault: "A permit takes one whatever its weight, so more is given out than there is.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if c.Kind == driver.Permit {
					c.Weight = 1
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "ClaimsReads", Law: "Law01_Rule", Says: "want an error that matches ErrRefused",
		Fault: "The traits say that there are no read claims, and there are.",
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Shared = false }} },
	},
	{
		Name: "ClaimsPermits", Law: "Law01_Rule", Says: "got an error although nothing was wrong",
		Fault: "The traits say that there are permits, and they are refused.",
		store: memlock.Personality{NoCount: true},
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Counted = true }} },
	},
	{
		Name: "ClaimsOneKind", Law: "Law01_Rule", Says: "in a store that does not mix kinds",
		Fault: "The traits say that a name has one kind, and another kind is let in line.",
		new:   kindsApart(),
		twin:  kindsApart(driver.Mutex, driver.Write, driver.Read),
	},
	{
		Name: "MutexAmongReaders", Law: "Law01_Rule", Says: "a mutex on a name that is a read/write lock",
		Fault: "A store that keeps kinds apart lets a mutex in line behind readers.",
		new:   kindsApart(driver.Write, driver.Read),
		twin:  kindsApart(driver.Mutex, driver.Write, driver.Read),
	},
	{
		Name: "NewIDAfterError", Law: "Law02_Idempotence", Says: "was not given",
		Fault: "A request that was not answered is repeated under a new ID, and finds its own first attempt in the way.",
		new:   newIDAfterError,
	},
	{
		Name: "ReleaseTwiceIsError", Law: "Law02_Idempotence", Says: "could not release",
		Fault: "The Release of a claim that is gone is an error.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if err == nil && !held {
					err = errors.New("not the holder")
				}
				return held, err
			}}
		},
	},
	{
		Name: "AskingLosesThePlace", Law: "Law02_Idempotence", Says: "was not told that it holds",
		Fault: "A waiting claim that is asked for again is put at the end of the line.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				s.mu.Lock()
				_, again := s.claims[c.ID]
				s.mu.Unlock()
				if err == nil && again && !g.Held {
					_, _ = s.Session.Release(ctx, c) // a wire that fails is no part of the fault
					return s.acquire(ctx, c)
				}
				return g, err
			}}
		},
	},
	{
		Name: "SessionIsReentrant", Law: "Law03_OneSession", Says: "although others are in the way",
		Fault: "The session that holds a name is given it again, as by an advisory lock of one connection.",
		new:   sessionIsReentrant,
	},
	{
		Name: "NoRenewalOfOld", Law: "Law04_OnceHeld", Says: "was neither released nor broken",
		Fault: "A claim goes one time after it was granted whatever Renew does: the renewal of the record is forgotten.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				s.dropOlder(ctx)
				return s.Session.Renew(ctx)
			}}
		},
	},
	{
		Name: "TwinClosesAll", Law: "Law04_OnceHeld", Says: "another session of the same process was closed",
		Fault: "Close of one session releases the claims of all sessions of its connection.",
		new: func() *fault {
			return &fault{close: func(s *session, ctx context.Context) error {
				s.l.mu.Lock()
				all := slices.Clone(s.l.sessions)
				s.l.mu.Unlock()
				for _, other := range all {
					for _, c := range other.all() {
						_, _ = other.Session.Release(ctx, c) // a wire that fails is no part of the fault
					}
				}
				return s.Session.Close(ctx)
			}}
		},
	},
	{
		Name: "ClaimsSurvival", Law: "Law04_OnceHeld", Says: "although claims survive that",
		Fault: "The traits say that claims survive a restart of the store, and it comes up empty.",
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Survives.Restart = true }} },
	},
	{
		Name: "ClaimsToForget", Law: "Law04_OnceHeld", Says: "Traits.Survives.Restart should be true",
		Fault: "The traits say that claims do not survive a restart of the store, and they do.",
		new:   func() *fault { return &fault{restart: sameStore} },
	},
	{
		Name: "LastComesFirst", Law: "Law11_NoOvertaking", Says: "were granted in the order",
		Fault: "Who came last is granted first, in a store that promises order.",
		store: memlock.Personality{NoOrder: true},
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Ordered = true }} },
	},
	{
		Name: "TryCutsIn", Law: "Law11_NoOvertaking", Says: "others are in the way",
		Fault: "A try looks at the holders only, and shares with the readers past a writer that waits.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && !g.Held && !c.Queue && c.Kind == driver.Read && g.Holder != nil && g.Holder.Kind == driver.Read {
					return driver.Grant{Held: true}, nil
				}
				return g, err
			}}
		},
	},
	{
		Name: "ClaimsDisorder", Law: "Law11_NoOvertaking", Says: "Traits.Ordered should be true",
		Fault: "The traits promise no order, and the store never reorders.",
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Ordered = false }} },
	},
}

func newIDAfterError() *fault {
	var mu sync.Mutex
	current := map[string]string{}
	use := func(c driver.Claim) driver.Claim {
		mu.Lock()
		defer mu.Unlock()
		if id, ok := current[c.ID]; ok {
			c.ID = id
		}
		return c
	}
	return &fault{
		acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := s.acquire(ctx, use(c))
			if err != nil {
				mu.Lock()
				current[c.ID] = driver.NewID()
				mu.Unlock()
			}
			return g, err
		},
		wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			return s.Session.Wait(ctx, use(c))
		},
		release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			return s.Session.Release(ctx, use(c))
		},
	}
}

func sessionIsReentrant() *fault {
	return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		for _, mine := range s.all() {
			if g := s.known(mine.ID); mine.Name == c.Name && g.Held && mine.ID != c.ID && mine.Kind.Exclusive() && c.Kind.Exclusive() {
				return g, nil
			}
		}
		return s.acquire(ctx, c)
	}}
}
