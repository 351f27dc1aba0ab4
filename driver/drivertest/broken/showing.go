package broken

import (
	"context"
	"iter"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// showing are the faults about what operators see and do: law 15, and the optional interfaces.
var showing = []Driver{
	{
		Name: "BreakIgnoresToken", Law: "Law15_Break", Says: "want an error that matches ErrRefused",
		Fault: "Break hits the claim of that public id whatever token it has now.",
		new: func() *fault {
			return &fault{breaks: func(l *layer, ctx context.Context, name, publicID string, _ uint64, now bool) error {
				line, err := l.memory.Line(ctx, name)
				if err != nil {
					return err
				}
				for _, h := range line.Claims {
					if h.PublicID == publicID {
						return l.memory.Break(ctx, name, publicID, h.Fence, now)
					}
				}
				return l.memory.Break(ctx, name, publicID, 0, now)
			}}
		},
	},
	{
		Name: "BreakHitsTheHolder", Law: "Law15_Break", Says: "want an error that matches ErrRefused",
		Fault: "Break deletes whoever holds the name.",
		new: func() *fault {
			return &fault{breaks: func(l *layer, ctx context.Context, name, _ string, _ uint64, now bool) error {
				line, err := l.memory.Line(ctx, name)
				if err != nil || len(line.Claims) == 0 {
					return err
				}
				return l.memory.Break(ctx, name, line.Claims[0].PublicID, line.Claims[0].Fence, now)
			}}
		},
	},
	{
		Name: "BreakIsAtOnce", Law: "Law15_Break", Says: "could know",
		Fault: "Break lets the next in before the owner can know.",
		new: func() *fault {
			return &fault{breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, _ bool) error {
				return l.memory.Break(ctx, name, publicID, fence, true)
			}}
		},
	},
	{
		Name: "BreakIsSilent", Law: "Law15_Break", Says: "Renew does not name it in Lost",
		Fault: "Renew does not look at the mark of a broken claim.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				r.Lost = nil
				return r, err
			}}
		},
	},
	{
		Name: "KeepsItsPlace", Law: "Also_Requeue", Says: "is held after Requeue although",
		Fault: "Requeue hands on to itself: the next claim has the old one's place.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				s.mark(next.ID, true)
				g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
				if err == nil && !g.Held {
					g = driver.Grant{Held: true, Fence: s.known(old.ID).Fence + driver.Stride}
				}
				return g, held, err
			}}
		},
	},
	{
		Name: "QueuesBehindItself", Law: "Also_Requeue", Says: "is alone in line and not held after Requeue",
		Fault: "Requeue stands in line first and leaves it then, and answers what it saw in between.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				g, err := s.acquire(ctx, next)
				if err != nil {
					return g, false, err
				}
				held, err := s.Session.Release(ctx, old)
				return g, held, err
			}}
		},
	},
	{
		Name: "ShowsSecrets", Law: "Also_Inspector", Says: "stands in what everybody sees",
		Fault: "The session's secret ID is shown as the program of its owner.",
		new: func() *fault {
			var secrets secrets
			return &fault{
				open: func(s *session) { secrets.keep(s.spec) },
				line: func(_ *layer, line *driver.Line) {
					for i, h := range line.Claims {
						line.Claims[i].Owner.Program = secrets.of(h.Owner.Name)
					}
				},
			}
		},
	},
	{
		Name: "ShowsHoldersOnly", Law: "Also_Inspector", Says: "has 1 claims, want 3",
		Fault: "Who waits is not shown.",
		new: func() *fault {
			return &fault{line: func(_ *layer, line *driver.Line) {
				for i, h := range line.Claims {
					if !h.Held {
						line.Claims = line.Claims[:i]
						return
					}
				}
			}}
		},
	},
	{
		Name: "WatchesOnce", Law: "Also_Watch", Says: "before it showed",
		Fault: "Watch yields the line as it is and ends.",
		new: func() *fault {
			return &fault{watch: func(_ *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
				return func(yield func(driver.Line, error) bool) {
					for l, err := range lines {
						yield(l, err)
						return
					}
				}
			}}
		},
	},
	{
		Name: "TakesAnyTTL", Law: "Also_Traits", Says: "gave a session that is valid for",
		Fault: "A TTL beyond the store's longest is believed, and the store gives what it can.",
		new: func() *fault {
			return &fault{traits: func(t *driver.Traits) { t.MaxTTL /= 1000 }}
		},
	},
	{
		// Which symptom shows first is a matter of scheduling.
		Name: "TwoInside", Law: "Also_Parallel", Says: "Also_Parallel is broken",
		Fault: "What one claim of a session was told is told to all its claims of the name.",
		new:   sessionIsReentrant,
	},
}

// secrets knows the sessions' IDs by their owners' names.
type secrets struct {
	mu   sync.Mutex
	name map[string]string
}

func (k *secrets) keep(s driver.Spec) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.name == nil {
		k.name = map[string]string{}
	}
	k.name[s.Owner.Name] = s.ID
}

func (k *secrets) of(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.name[name]
}
