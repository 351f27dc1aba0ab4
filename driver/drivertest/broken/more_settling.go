package broken

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreSettling are faults about who applies the rule to a line that others have changed, and about
// calls that go their own way.
var moreSettling = []Driver{
	{
		Name: "ReleaseLetsNobodyIn", Law: "Law08_Expiry", Says: "was not told that it holds after the Release of",
		Fault: "Release takes a claim out of the line, and whoever waits is let in by the next Acquire or Renew that changes the line.",
		new: func() *fault {
			u := &unsettled{left: map[string][]func(){}}
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					if c.Queue && !s.l.stands(c) {
						u.settle(c.Name)
					}
					return s.acquire(ctx, c)
				},
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					for _, c := range s.all() {
						u.settle(c.Name)
					}
					return s.Session.Renew(ctx)
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					line := s.l.look(c.Name)
					if h, _ := find(line, driver.PublicID(c.ID)); !h.Held || len(line.Claims) == 1 {
						return s.Session.Release(ctx, c)
					}
					u.leave(c.Name, func() { _, _ = s.Session.Release(context.WithoutCancel(ctx), c) })
					return true, nil
				},
			}
		},
	},
	{
		Name: "OwnTimeLimit", Law: "Also_Contexts", Says: "was not back",
		Fault: "Calls have a limit of five seconds of their own and no other.",
		new: func() *fault {
			own := func(s *session, ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(s.l.endless(ctx), 5*time.Second)
			}
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					ctx, cancel := own(s, ctx)
					defer cancel()
					return s.acquire(ctx, c)
				},
				release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
					ctx, cancel := own(s, ctx)
					defer cancel()
					return s.Session.Release(ctx, c)
				},
			}
		},
	},
	{
		Name: "ShowsTheDead", Law: "Law08_Expiry", Says: "claims are shown with an end that is over, and whoever comes is let in",
		Fault: "A claim whose time is over is shown until the name is used again.",
		new: func() *fault {
			k := &lastSeen{lines: map[string]driver.Line{}}
			return &fault{acquire: k.acquire, looks: k.look}
		},
	},
}

// stands reports whether the claim is in line.
func (l *layer) stands(c driver.Claim) bool {
	_, ok := find(l.look(c.Name), driver.PublicID(c.ID))
	return ok
}

// unsettled are the lines that claims have left, and what is to be done about it.
type unsettled struct {
	mu   sync.Mutex
	left map[string][]func()
}

func (u *unsettled) leave(name string, do func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.left[name] = append(u.left[name], do)
}

func (u *unsettled) settle(name string) {
	u.mu.Lock()
	do := u.left[name]
	delete(u.left, name)
	u.mu.Unlock()
	for _, f := range do {
		f()
	}
}

// lastSeen is what was seen of each line since somebody came to it.
type lastSeen struct {
	mu    sync.Mutex
	lines map[string]driver.Line
}

func (k *lastSeen) acquire(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) { //nolint:revive // in the order of a fault
	g, err := s.acquire(ctx, c)
	line := s.l.look(c.Name) //nolint:contextcheck // over a wire that nobody cuts
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines[c.Name] = line
	return g, err
}

func (k *lastSeen) look(l *layer, ctx context.Context, name string) (driver.Line, error) { //nolint:revive // in the order of a fault
	line, err := l.memory.Line(ctx, name)
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.lines[name]
	if err != nil || len(line.Claims) > 0 || len(before.Claims) == 0 || time.Now().Before(before.Claims[0].Until) {
		return line, err
	}
	return before, nil
}
