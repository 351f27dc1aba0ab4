package broken

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// moreSharing are faults of readers and permits, of weights and limits, and of what goes with what.
var moreSharing = []Driver{
	{
		Name: "LimitOfTheFirst", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "The limit of a semaphore is the one of the first permit in its line.",
		new: joining(func(l *layer, c driver.Claim) driver.Claim {
			if line := l.look(c.Name); c.Kind == driver.Permit && len(line.Claims) > 0 {
				c.Limit = max(line.Claims[0].Limit, c.Weight)
			}
			return c
		}),
	},
	{
		Name: "LimitOfTheSmallest", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "The limit of a semaphore is the smallest of those in its line.",
		new: joining(func(l *layer, c driver.Claim) driver.Claim {
			if c.Kind == driver.Permit {
				for _, h := range l.look(c.Name).Claims {
					c.Limit = max(min(c.Limit, h.Limit), c.Weight)
				}
			}
			return c
		}),
	},
	{
		Name: "LimitOfTheLargest", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "The limit of a semaphore is the largest of those in its line.",
		new: joining(func(l *layer, c driver.Claim) driver.Claim {
			if c.Kind == driver.Permit {
				for _, h := range l.look(c.Name).Claims {
					c.Limit = max(c.Limit, h.Limit)
				}
			}
			return c
		}),
	},
	{
		Name: "LimitForEver", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "A semaphore keeps the limit that it was made with, also when nobody stands there any more.",
		new: func() *fault {
			var mu sync.Mutex
			made := map[string]int{}
			return joining(func(_ *layer, c driver.Claim) driver.Claim {
				mu.Lock()
				defer mu.Unlock()
				if c.Kind == driver.Permit {
					if made[c.Name] == 0 {
						made[c.Name] = c.Limit
					}
					c.Limit = max(made[c.Name], c.Weight)
				}
				return c
			})()
		},
	},
	{
		Name: "Limits16Bits", Law: "Also_Numbers", Says: "permit 33333 of 100000",
		Fault: "Limits and weights are kept in sixteen bits: what is more is the most that they hold.",
		new: joining(func(_ *layer, c driver.Claim) driver.Claim {
			if c.Kind == driver.Permit {
				c.Weight, c.Limit = min(c.Weight, 1<<16-1), min(c.Limit, 1<<16-1)
			}
			return c
		}),
	},
	{
		Name: "SumsOverflow", Law: "Also_Numbers", Says: "permit 1 of 2147483647, try",
		Fault: "Weights are added in 32 bits, so two of All are less than nothing.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err != nil || g.Held || c.Kind != driver.Permit {
					return g, err
				}
				sum := int32(c.Weight)
				for _, h := range s.l.look(c.Name).Claims {
					if h.PublicID != driver.PublicID(c.ID) {
						sum += int32(h.Weight)
					}
				}
				g.Held = sum < 0
				return g, nil
			}}
		},
	},
	{
		Name: "SmallPermitOvertakes", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "A permit is let in when there is room beside the holders, past a larger one that waits.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err != nil || g.Held || c.Kind != driver.Permit || !c.Queue {
					return g, err
				}
				sum := c.Weight
				for _, h := range s.l.look(c.Name).Claims {
					if h.Held {
						sum += h.Weight
					}
				}
				g.Held = sum <= c.Limit
				return g, nil
			}}
		},
	},
	{
		Name: "ReadersBarge", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "A reader that queues shares with those who read, past a writer that waits.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && !g.Held && c.Queue && c.Kind == driver.Read && g.Holder != nil && g.Holder.Kind == driver.Read {
					g.Held = true
				}
				return g, err
			}}
		},
	},
	{
		Name: "TenReaders", Law: "Also_Numbers", Says: "number 11, was not let in beside the others",
		Fault: "A record has room for ten readers, and the next one waits.",
		new:   readersAtMost(10),
	},
	{
		Name: "HundredReaders", Law: "Also_Numbers", Says: "number 101, was not let in beside the others",
		Fault: "A record has room for a hundred readers, and the next one waits.",
		new:   readersAtMost(100),
	},
	{
		Name: "ReaderOncePerSession", Law: "Law01_Rule", Says: "by the rule",
		Fault: "Readers are kept by session: the second read of a session is the first one, and goes with it.",
		new:   oncePerSession(driver.Read),
	},
	{
		Name: "PermitOncePerSession", Law: "Law01_Rule", Says: "by the rule",
		Fault: "Permits are kept by session: the second permit of a session is the first one, and goes with it.",
		new:   oncePerSession(driver.Permit),
	},
	{
		Name: "ReleaseOfAllReads", Law: "Law01_Rule", Says: "by the rule",
		Fault: "Release of a read takes out all reads of the session on that name.",
		new:   releasesAll(driver.Read),
	},
	{
		Name: "ReleaseOfAllPermits", Law: "Law01_Rule", Says: "by the rule",
		Fault: "Release of a permit takes out all permits of the session on that name.",
		new:   releasesAll(driver.Permit),
	},
	{
		Name: "ReleaseGivesBackOne", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "The Release of a permit gives back one, whatever it took.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if err == nil && held && c.Weight > 1 && c.Kind == driver.Permit {
					c.Weight--
					s.l.remains(c)
				}
				return held, err
			}}
		},
	},
	{
		Name: "BreakGivesBackOne", Law: "Law15_Break", Says: "which nothing stands in the way of",
		Fault: "Break of a permit with now gives back one, whatever it took.",
		new: func() *fault {
			return &fault{breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
				h, _ := find(l.look(name), publicID)
				err := l.memory.Break(ctx, name, publicID, fence, now)
				if err == nil && now && h.Held && h.Kind == driver.Permit && h.Weight > 1 {
					l.remains(driver.Claim{Name: name, Kind: h.Kind, Weight: h.Weight - 1, Limit: h.Limit})
				}
				return err
			}}
		},
	},
	{
		Name: "TryOfPermitStays", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "A permit that may not queue and does not fit stays in line until it is released.",
		new:   tryStays(driver.Permit),
	},
	{
		Name: "TryOfReadStays", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "A read that may not queue and does not fit stays in line until it is released.",
		new:   tryStays(driver.Read),
	},
	{
		Name: "TryOfWriteStays", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "A write claim that may not queue and does not fit stays in line until it is released.",
		new:   tryStays(driver.Write),
	},
	{
		Name: "PermitAmongLocks", Law: "Law01_Rule", Says: "was answered with not held, mutex",
		Fault: "A permit is let in line behind locks.",
		new: joining(func(l *layer, c driver.Claim) driver.Claim {
			if line := l.look(c.Name); c.Kind == driver.Permit && len(line.Claims) > 0 && line.Claims[0].Kind != driver.Permit {
				c.Kind = driver.Read
			}
			return c
		}),
	},
	{
		Name: "LockAmongPermits", Law: "Law01_Rule", Says: "was answered with not held, permit",
		Fault: "A lock is let in line behind permits.",
		new: joining(func(l *layer, c driver.Claim) driver.Claim {
			if line := l.look(c.Name); len(line.Claims) > 0 && line.Claims[0].Kind == driver.Permit {
				c.Kind = driver.Permit
			}
			return c
		}),
	},
	{
		Name: "MisfitIsUnknown", Law: "Law01_Rule", Says: "was answered with error: no row (outcome unknown), want an error that matches ErrRefused",
		Fault: "A claim that does not go with those that stand there gets an error that says nothing.",
		new:   func() *fault { return &fault{acquire: unsaid(driver.ErrRefused)} },
	},
	{
		Name: "MisfitStays", Law: "Law01_Rule", Says: "which nothing stands in the way of",
		Fault: "A claim that does not go with those that stand there is refused, and its record stays.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if line := s.l.look(c.Name); errors.Is(err, driver.ErrRefused) && len(line.Claims) > 0 {
					c.Kind, c.Weight, c.Limit = line.Claims[0].Kind, driver.All, driver.All
					s.l.remains(c)
				}
				return g, err
			}}
		},
	},
	{
		Name: "KindForEver", Law: "Law01_Rule", Says: "and got an error although nothing was wrong: refused by the store",
		Fault: "A name that was a semaphore once is refused as a lock, and the other way, also when nobody stands there.",
		new: func() *fault {
			var mu sync.Mutex
			first := map[string]driver.Kind{}
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				mu.Lock()
				if first[c.Name] == 0 {
					first[c.Name] = c.Kind
				}
				was := first[c.Name]
				mu.Unlock()
				if (was == driver.Permit) != (c.Kind == driver.Permit) {
					return driver.Grant{}, driver.ErrRefused
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "MisfitEndsTheSession", Law: "Law01_Rule", Says: "and got an error although nothing was wrong",
		Fault: "A claim that is refused fails its transaction, and the session with it.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if errors.Is(err, driver.ErrRefused) {
					_ = s.Session.Close(ctx)
				}
				return g, err
			}}
		},
	},
	{
		Name: "AskedAgainWithoutQueue", Law: "Law01_Rule", Says: "although the weights ahead of it leave",
		Fault: "A try that holds and is asked for again finds itself in the way.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				was := s.known(c.ID).Held
				g, err := s.acquire(ctx, c)
				if was && !c.Queue {
					g = driver.Grant{}
				}
				return g, err
			}}
		},
	},
}

// joining passes every claim that may join a line on as of says.
func joining(of func(*layer, driver.Claim) driver.Claim) func() *fault {
	return func() *fault {
		return &fault{
			acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				return s.acquire(ctx, of(s.l, c))
			},
			requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				return s.Session.(driver.Requeuer).Requeue(ctx, old, of(s.l, next))
			},
		}
	}
}

func readersAtMost(n int) func() *fault {
	return func() *fault {
		f := joining(func(_ *layer, c driver.Claim) driver.Claim {
			if c.Kind == driver.Read {
				c.Limit = n
			}
			return c
		})()
		return shown(f, func(_ *layer, line *driver.Line) {
			for i, h := range line.Claims {
				if h.Kind == driver.Read {
					line.Claims[i].Limit = driver.All
				}
			}
		})
	}
}

// oncePerSession answers a second claim of a kind on a name with what the first one has.
func oncePerSession(kind driver.Kind) func() *fault {
	return func() *fault {
		return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if c.Kind == kind {
				for _, mine := range s.all() {
					if mine.Name == c.Name && mine.ID != c.ID && mine.Kind == kind && s.known(mine.ID).Held {
						return s.known(mine.ID), nil
					}
				}
			}
			return s.acquire(ctx, c)
		}}
	}
}

// releasesAll releases with a claim of a kind all of its session on that name.
func releasesAll(kind driver.Kind) func() *fault {
	return func() *fault {
		return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
			held, err := s.Session.Release(ctx, c)
			for _, mine := range s.all() {
				if err == nil && c.Kind == kind && mine.Kind == kind && mine.Name == c.Name && mine.ID != c.ID {
					_, _ = s.Session.Release(ctx, mine)
				}
			}
			return held, err
		}}
	}
}

// tryStays puts claims of a kind in line that may not queue.
func tryStays(kind driver.Kind) func() *fault {
	return joining(func(_ *layer, c driver.Claim) driver.Claim {
		if c.Kind == kind {
			c.Queue = true
		}
		return c
	})
}
