package broken

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// ending are faults about the end of claims, of some kinds, or of what a session has beside its
// first claims.
var ending = []Driver{
	{
		Name: "ExpiryWakesOneReader", Law: "Law08_Expiry", Says: "which lets in three",
		Fault: "Whoever finds that a writer's time is over is told, and the readers behind it hear at their next Renew.",
		new:   expiryWakesOneReader,
	},
	{
		Name: "SecondGoesWithTheFirst", Law: "Law08_Expiry", Says: "before the time of c",
		Fault: "When one claim of a session expires, all of them are dropped.",
		new:   secondGoesWithTheFirst,
	},
	{
		Name: "CloseLeavesReaders", Law: "Law12_Close", Says: "after Close of the session that held c",
		Fault: "Close releases the exclusive claims and permits, and readers are left to expire.",
		new: func() *fault {
			return closing(func(_ int, c driver.Claim) bool { return c.Kind != driver.Read })
		},
	},
	{
		Name: "ClosesAHundred", Law: "Law12_Close", Says: "claims of a session that was closed, still keeps others out",
		Fault: "Close sends one page of releases: the claims beyond the first hundred are left to expire.",
		new: func() *fault {
			return closing(func(i int, _ driver.Claim) bool { return i < 100 })
		},
	},
	{
		Name: "KeepsLostReleases", Law: "Law13_NothingStays", Says: "still keeps others out after the Release of a",
		Fault: "Renew drops mutexes whose Release was lost, and renews other claims.",
		new:   keepsLostReleases,
	},
	{
		Name: "RenewFindsMutexes", Law: "Law14_LostNotice", Says: "has become held, and Wait does not say so after a Renew",
		Fault: "Renew finds the grants of mutexes; a reader or a permit knows only what it was told.",
		store: memlock.Personality{Notices: memlock.Lost},
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if g := s.known(c.ID); g.Held || c.Kind == driver.Mutex {
					return s.Session.Wait(ctx, c)
				}
				<-ctx.Done()
				return driver.Grant{}, ctx.Err()
			}}
		},
	},
	{
		Name: "LosesTheLiving", Law: "Law04_OnceHeld", Says: "is told that this mutex is lost although it was neither released nor broken",
		Fault: "The channel of losses names each claim that was written, and not only those that were deleted.",
		new:   losesTheLiving,
	},
	{
		Name: "EndLeavesReaders", Law: "Also_Loss", Says: "after the end of the session of c",
		Fault: "What ends a session ends its exclusive claims, and its readers stay until their time is over.",
		new:   endLeavesReaders,
	},
	{
		Name: "RestartForgetsReaders", Law: "Law04_OnceHeld", Says: "another was let in beside this read",
		Fault: "Readers stand in memory alone, and the traits say that claims survive a restart.",
		new:   func() *fault { return &fault{traits: surviving, restart: forgetReaders} },
		twin:  func() *fault { return &fault{traits: surviving, restart: sameStore} },
	},
	{
		Name: "BrokenWaiterComesBack", Law: "Law15_Break", Says: "something of it keeps others out",
		Fault: "A reader that is broken while it waits is put at the end of the line for nobody.",
		new:   brokenWaiterComesBack,
	},
	{
		Name: "RenewsBehindWait", Law: "Law16_RenewBounded", Says: "could not renew",
		Fault: "A Wait has the connection to itself while it is under way, and Renew stands behind it.",
		new:   renewsBehindWait,
	},
}

// expiryWakesOneReader tells one of the readers that an expiry has let in.
func expiryWakesOneReader() *fault {
	var mu sync.Mutex
	var woken oneOf
	left := map[string]time.Time{} // when a claim was last released, by name
	return &fault{
		release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			mu.Lock()
			left[c.Name] = time.Now()
			mu.Unlock()
			return s.Session.Release(ctx, c)
		},
		wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			from := time.Now()
			g, err := s.Session.Wait(ctx, c)
			mu.Lock()
			expired := left[c.Name].Before(from)
			mu.Unlock()
			if err == nil && g.Held && c.Kind == driver.Read && expired && time.Since(from) > 0 && !woken.first(c.Name) {
				return g, s.untilRenewed(ctx)
			}
			return g, err
		},
	}
}

// secondGoesWithTheFirst drops a session's claims when the first of them is over.
func secondGoesWithTheFirst() *fault {
	var drop func(s *session, c driver.Claim)
	drop = func(s *session, c driver.Claim) {
		mine := s.all()
		l, err := s.l.memory.Share().Line(context.Background(), c.Name)
		stands := err != nil
		for _, h := range l.Claims {
			stands = stands || h.PublicID == driver.PublicID(c.ID)
		}
		known := false
		for _, other := range mine {
			known = known || other.ID == c.ID
		}
		switch {
		case !known: // released
		case stands:
			time.AfterFunc(s.Session.Valid()/10, func() { drop(s, c) })
		default:
			for _, other := range mine {
				_, _ = s.Session.Release(context.Background(), other) // is gone already, or goes now
			}
		}
	}
	return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := s.acquire(ctx, c)
		if err == nil && g.Held && !s.mark(c.ID, true) {
			time.AfterFunc(s.Session.Valid()+time.Millisecond, func() { drop(s, c) })
		}
		return g, err
	}}
}

// keepsLostReleases renews what is no mutex although its Release was lost.
func keepsLostReleases() *fault {
	var mu sync.Mutex
	lost := map[*session][]driver.Claim{}
	return &fault{
		release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			held, err := s.Session.Release(ctx, c)
			if err != nil && c.Kind != driver.Mutex {
				mu.Lock()
				defer mu.Unlock()
				lost[s] = append(lost[s], c)
			}
			return held, err
		},
		renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
			r, err := s.Session.Renew(ctx)
			mu.Lock()
			defer mu.Unlock()
			for _, c := range lost[s] {
				_, _ = s.acquire(ctx, c) // as if it had not been dropped
			}
			return r, err
		},
	}
}

// losesTheLiving tells each claim that is held as lost.
func losesTheLiving() *fault {
	var mu sync.Mutex
	channels := map[*session]chan driver.Loss{}
	f := &fault{lost: func(s *session) <-chan driver.Loss {
		mu.Lock()
		defer mu.Unlock()
		if channels[s] == nil {
			c := make(chan driver.Loss, 1000)
			channels[s] = c
			go func() {
				for l := range s.Session.(driver.LossNotifier).Lost() {
					c <- l
				}
				close(c)
			}()
		}
		return channels[s]
	}}
	f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := s.acquire(ctx, c)
		if err == nil && g.Held {
			mu.Lock()
			defer mu.Unlock()
			select {
			case channels[s] <- gone(c.ID):
			default:
			}
		}
		return g, err
	}
	return f
}

// endLeavesReaders keeps readers in a session that the store does not end.
func endLeavesReaders() *fault {
	b := &beside{apart: true, has: func(_ *session, c driver.Claim, _ int) bool { return c.Kind == driver.Read }}
	f := b.fault()
	acquire := f.acquire
	f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if _, err := s.Session.Release(ctx, driver.Claim{Name: c.Name, ID: "none"}); err != nil {
			return driver.Grant{}, err
		}
		return acquire(s, ctx, c)
	}
	f.renew = func(s *session, ctx context.Context) (driver.Renewal, error) {
		r, err := s.Session.Renew(ctx)
		if err != nil {
			return r, err
		}
		more, err := b.other(s).Renew(ctx)
		r.Lost = append(r.Lost, more.Lost...)
		return r, err
	}
	return f
}

func surviving(t *driver.Traits) { t.Survives.Restart = true }

func brokenWaiterComesBack() *fault {
	return &fault{breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
		line, err := l.memory.Line(ctx, name)
		if err != nil {
			return err
		}
		if err := l.memory.Break(ctx, name, publicID, fence, now); err != nil {
			return err
		}
		for _, h := range line.Claims {
			if h.PublicID != publicID || h.Held || h.Kind != driver.Read {
				continue
			}
			s, err := l.memory.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour})
			if err != nil {
				return err
			}
			orphan := driver.Claim{Name: name, ID: driver.NewID(), Kind: h.Kind, Weight: h.Weight, Limit: h.Limit, Queue: true}
			if _, err := s.Acquire(ctx, orphan); err != nil {
				return err
			}
		}
		return nil
	}}
}
