package broken

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// moreTokens are faults about fencing tokens.
var moreTokens = []Driver{
	{
		Name: "BreakResetsTokens", Law: "Law15_Break", Says: "and after the Break of",
		Fault: "Break with now deletes the record, and the counter in it.",
		new: func() *fault {
			k := &counter{}
			f := k.fault()
			f.breaks = func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
				err := l.memory.Break(ctx, name, publicID, fence, now)
				if err == nil && now {
					k.lower(name)
				}
				return err
			}
			return f
		},
	},
	{
		Name: "BrokenResetsTokens", Law: "Law15_Break", Says: "and after the Break of",
		Fault: "The Release of a claim that was marked as broken deletes the record, and the counter in it.",
		new: func() *fault {
			k := &counter{}
			f := k.fault()
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				h, _ := find(s.l.look(c.Name), driver.PublicID(c.ID))
				if h.Broken {
					k.lower(c.Name)
				}
				return s.Session.Release(ctx, c)
			}
			return f
		},
	},
	{
		Name: "CloseResetsTokens", Law: "Law05_Tokens", Says: "and after Close of the session that held",
		Fault: "Close of a session deletes its records, and the counters in them.",
		new: func() *fault {
			k := &counter{}
			f := k.fault()
			f.close = func(s *session, ctx context.Context) error {
				for _, c := range s.all() {
					k.lower(c.Name)
				}
				return s.Session.Close(ctx)
			}
			return f
		},
	},
	{
		Name: "RequeueResetsTokens", Law: "Also_Requeue", Says: "want at least",
		Fault: "Requeue writes the record anew, with a counter that begins again.",
		new: func() *fault {
			k := &counter{}
			f := k.fault()
			f.requeue = func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				k.lower(next.Name)
				g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
				return k.tell(s, next, g), held, err
			}
			return f
		},
	},
	{
		Name: "EmptyResetsTokens", Law: "Law05_Tokens", Says: "want at least",
		Fault: "A line without claims is deleted, and its counter with it.",
		new: func() *fault {
			k := &counter{}
			f := k.fault()
			f.release = func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if len(s.l.look(c.Name).Claims) == 0 {
					k.lower(c.Name)
				}
				return held, err
			}
			return f
		},
	},
	{
		Name: "TokensByKind", Law: "Law05_Tokens", Says: "want at least",
		Fault: "Write locks have a counter of their own, which lags behind the one of mutexes on the same name.",
		new: func() *fault {
			return telling(&fault{}, func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
				if c.Kind == driver.Write && g.Fence > 0 {
					g.Fence -= 1 << 40
				}
				return g
			})
		},
	},
	{
		Name: "TokensByArrival", Law: "Law05_Tokens", Says: "token",
		Fault: "A token is drawn when a claim comes, in a store that grants in another order.",
		store: memlock.Personality{NoOrder: true},
		new: func() *fault {
			var mu sync.Mutex
			drawn := map[string]uint64{}
			next := uint64(1 << 50)
			f := telling(&fault{}, func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
				mu.Lock()
				defer mu.Unlock()
				if drawn[c.ID] == 0 {
					next += driver.Stride
					drawn[c.ID] = next
				}
				if g.Fence > 0 {
					g.Fence = drawn[c.ID]
				}
				return g
			})
			return f
		},
	},
	{
		Name: "TokenIsTheHighest", Law: "Law05_Tokens", Says: "but the holder may use up to",
		Fault: "A grant tells the highest of the tokens that it reserved, so what is passed on has the next one's.",
		new: func() *fault {
			f := telling(&fault{}, func(_ *session, _ driver.Claim, g driver.Grant) driver.Grant {
				if g.Fence > 0 {
					g.Fence += driver.Stride - 1
				}
				return g
			})
			f.breaks = func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
				if fence > 0 {
					fence -= driver.Stride - 1
				}
				return l.memory.Break(ctx, name, publicID, fence, now)
			}
			shown(f, func(_ *layer, line *driver.Line) {
				for i, h := range line.Claims {
					if h.Fence > 0 {
						line.Claims[i].Fence += driver.Stride - 1
					}
				}
			})
			return f
		},
	},
	{
		Name: "TokenIsDouble", Law: "Law05_Tokens", Says: "want at least",
		Fault: "A token goes through a number of single precision.",
		new:   tokensOf(func(f uint64) uint64 { return uint64(float32(f)) }, nil),
	},
	{
		Name: "TokenTooLarge", Law: "Law15_Break", Says: "Break of a claim with another of its tokens answered <nil>: want an error that matches",
		Fault: "The counter is seeded with nanoseconds, which JSON and Lua do not carry.",
		new:   tokensOf(func(f uint64) uint64 { return f * 1000 }, func(f uint64) uint64 { return f / 1000 }),
	},
	{
		Name: "WaitersHaveTokens", Law: "Law05_Tokens", Says: "waits and has the token",
		Fault: "A claim that waits is told the token of who holds the name.",
		new: func() *fault {
			return telling(&fault{}, func(_ *session, _ driver.Claim, g driver.Grant) driver.Grant {
				if !g.Held && g.Holder != nil {
					g.Fence = g.Holder.Fence
				}
				return g
			})
		},
	},
	{
		Name: "DeniedHaveTokens", Law: "Law05_Tokens", Says: "was answered with held=false and the token",
		Fault: "A try that is denied is told the token of who holds the name.",
		new: func() *fault {
			return telling(&fault{}, func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
				if !g.Held && g.Holder != nil && !c.Queue {
					g.Fence = g.Holder.Fence
				}
				return g
			})
		},
	},
	{
		Name: "PermitsHaveTokens", Law: "Law05_Tokens", Says: "but only exclusive claims have tokens",
		Fault: "A permit has a token as a mutex has.",
		new: func() *fault {
			return telling(&fault{}, func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
				if g.Held && c.Kind == driver.Permit {
					g.Fence = 1 << 51
				}
				return g
			})
		},
	},
	{
		Name: "RenewDrawsAgain", Law: "Law04_OnceHeld", Says: "when it was granted and",
		Fault: "A renewed claim is written anew, with another token when it is asked for.",
		new: func() *fault {
			return &fault{
				acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
					g, err := s.acquire(ctx, c)
					if g.Fence > 0 && s.isMarked(c.ID) {
						g.Fence++
					}
					return g, err
				},
				renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
					for _, c := range s.all() {
						s.mark(c.ID, true)
					}
					return s.Session.Renew(ctx)
				},
			}
		},
	},
	{
		Name: "WaitTellsOtherToken", Law: "Law05_Tokens", Says: "Wait told the token",
		Fault: "Wait tells another of the reserved tokens than Acquire.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if g.Fence > 0 {
					g.Fence++
				}
				return g, err
			}}
		},
	},
	{
		Name: "NoticeWithoutToken", Law: "Law05_Tokens", Says: "without a token",
		Fault: "The notice of a grant has no token: only who asks again has it.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				g.Fence = 0
				return g, err
			}}
		},
	},
	{
		Name: "AskedAgainWithoutToken", Law: "Law05_Tokens", Says: "Wait told the token",
		Fault: "Who asks again is told that it holds, without the token.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if s.known(c.ID).Held {
					g.Fence = 0
				}
				return g, err
			}}
		},
	},
	{
		Name: "TryMovesTokens", Law: "Law05_Tokens", Says: "tries that failed changed what",
		Fault: "A try that is denied has drawn a token, which is written over the holder's.",
		new: func() *fault {
			var mu sync.Mutex
			denied := map[string]uint64{}
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				was := s.known(c.ID)
				g, err := s.acquire(ctx, c)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && !g.Held && !c.Queue:
					denied[c.Name]++
				case was.Held && g.Fence > 0 && denied[c.Name] > 0:
					g.Fence += denied[c.Name]
				}
				return g, err
			}}
		},
	},
	{
		Name: "RequeueKeepsToken", Law: "Also_Requeue", Says: "want at least",
		Fault: "Requeue that is held at once has the token of the claim before.",
		new: func() *fault {
			var mu sync.Mutex
			kept := map[string]uint64{}
			f := telling(&fault{}, func(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
				mu.Lock()
				defer mu.Unlock()
				if kept[c.ID] > 0 && g.Fence > 0 {
					g.Fence = kept[c.ID]
				}
				return g
			})
			f.requeue = func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				was := s.known(old.ID).Fence
				g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
				if err == nil && g.Fence > 0 && was > 0 {
					mu.Lock()
					defer mu.Unlock()
					kept[next.ID], g.Fence = was, was
				}
				return g, held, err
			}
			return f
		},
	},
	{
		Name: "ShowsLowestToken", Law: "Law05_Tokens", Says: "but the holder may use up to",
		Fault: "The line shows the first of the reserved tokens as the highest.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				if line.Fence > 0 {
					line.Fence -= driver.Stride - 1
				}
			})
		},
	},
	{
		Name: "EmptyShowsNoToken", Law: "Law05_Tokens", Says: "but without claims the line's highest token is shown as 0",
		Fault: "A line without claims shows no token, although the store keeps the counter.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				if len(line.Claims) == 0 {
					line.Fence = 0
				}
			})
		},
	},
}

// tokensOf tells of in the place of every token, and shows it; back is its inverse, if it has one.
func tokensOf(of, back func(uint64) uint64) func() *fault {
	return func() *fault {
		f := telling(&fault{}, func(_ *session, _ driver.Claim, g driver.Grant) driver.Grant {
			g.Fence = of(g.Fence)
			return g
		})
		f.requeue = func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
			g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
			g.Fence = of(g.Fence)
			return g, held, err
		}
		if back != nil {
			f.breaks = func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
				return l.memory.Break(ctx, name, publicID, back(fence), now)
			}
		}
		return shown(f, func(_ *layer, line *driver.Line) {
			line.Fence = of(line.Fence)
			for i, h := range line.Claims {
				line.Claims[i].Fence = of(h.Fence)
			}
		})
	}
}

// counter is a token counter that can be lost.
type counter struct {
	mu    sync.Mutex
	lost  map[string]uint64 // how often, by name
	times map[string]uint64 // how often before the claim was granted, by its ID
}

func (k *counter) lower(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost == nil {
		k.lost = map[string]uint64{}
	}
	k.lost[name]++
}

func (k *counter) tell(_ *session, c driver.Claim, g driver.Grant) driver.Grant {
	k.mu.Lock()
	defer k.mu.Unlock()
	if g.Fence == 0 {
		return g
	}
	if k.times == nil {
		k.times = map[string]uint64{}
	}
	if _, known := k.times[c.ID]; !known {
		k.times[c.ID] = k.lost[c.Name]
	}
	g.Fence -= min(k.times[c.ID], 100) << 40
	return g
}

func (k *counter) fault() *fault { return telling(&fault{}, k.tell) }
