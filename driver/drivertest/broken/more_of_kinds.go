package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreOfKinds are faults that spare the mutex, of laws that tried nothing else once.
var moreOfKinds = []Driver{
	{
		Name: "ProcessIsReentrantForWrites", Law: "Law03_OneSession", Says: "A2 was given c",
		Fault: "A process keeps one record for a write lock, and its other sessions find it held.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				s.l.mu.Lock()
				twins := append([]*session{}, s.l.sessions...)
				s.l.mu.Unlock()
				for _, twin := range twins {
					for _, theirs := range twin.all() {
						if g := twin.known(theirs.ID); twin != s && theirs.Name == c.Name && theirs.Kind == driver.Write && c.Kind == driver.Write && g.Held {
							return g, nil
						}
					}
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "LastPermitFirst", Law: "Law11_NoOvertaking", Says: "came in this order for a permit, and were granted in the order",
		Fault: "Permits stand on a stack: who came last is granted first.",
		new: func() *fault {
			known := &owned{}
			var restacking sync.Mutex
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					restacking.Lock()
					defer restacking.Unlock()
					line := s.l.look(c.Name)
					_, again := find(line, driver.PublicID(c.ID))
					g, err := known.acquire(s, ctx, c)
					if again || err != nil || g.Held || !c.Queue || c.Kind != driver.Permit {
						return g, err
					}
					for _, h := range line.Claims { // those that wait stand again, behind c
						if other, of, _ := known.claim(h.PublicID); !h.Held && of != nil {
							_, _ = of.Session.Release(ctx, other)
							_, _ = of.Session.Acquire(ctx, other)
						}
					}
					return g, nil
				},
				wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					for {
						g, err := s.Session.Wait(ctx, c)
						restacking.Lock() // a claim that is put behind is gone for a moment
						_, stands := find(s.l.look(c.Name), driver.PublicID(c.ID))
						restacking.Unlock()
						if !errors.Is(err, driver.ErrGone) || !stands {
							return g, err
						}
						time.Sleep(time.Millisecond)
					}
				},
			}
		},
	},
	{
		Name: "RenewsBehindWaitingReads", Law: "Law16_RenewBounded", Says: "could not renew",
		Fault: "A reader that waits has the connection to itself, and Renew stands behind it.",
		new: func() *fault {
			f := renewsBehindWait()
			wait := f.wait
			f.wait = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if c.Kind != driver.Read {
					return s.Session.Wait(ctx, c)
				}
				return wait(s, ctx, c)
			}
			return f
		},
	},
	{
		Name: "ReadsWaitForEver", Law: "Also_Contexts", Says: "was not back",
		Fault: "Wait of a read does not look at its context.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if c.Kind == driver.Read {
					ctx = s.l.endless(ctx)
				}
				return s.Session.Wait(ctx, c)
			}}
		},
	},
	{
		Name: "SessionIsReentrantForWrites", Law: "Also_Parallel", Says: "are held at once",
		Fault: "A session keeps one record for a write lock, and its other claims find it held.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				for _, mine := range s.all() {
					if g := s.known(mine.ID); mine.ID != c.ID && mine.Name == c.Name && mine.Kind == driver.Write && c.Kind == driver.Write && g.Held {
						return g, nil
					}
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "DeadProcessIsDeadReader", Law: "Also_Inherit", Says: `inherit-read`, Real: true,
		Fault: "The death of the process that opened the session ends its reads, although a child acts for it.",
		new: func() *fault {
			f := boundToFiles()
			f.kill = func(l *layer) { forgetReaders(l.memory.Share()) }
			return f
		},
		twin: boundToFiles,
	},
}
