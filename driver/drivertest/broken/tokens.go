package broken

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// tokens are the faults about fencing tokens: law 5.
var tokens = []Driver{
	{
		Name: "TokensWithoutStride", Law: "Law05_Tokens", Says: "want at least",
		Fault: "Every grant draws one token, so what is passed on inside a process repeats the next process's.",
		new:   func() *fault { return tokensBy(func(_ *session, g uint64) uint64 { return 1<<52 + g/driver.Stride }) },
	},
	{
		Name: "TokensPerSession", Law: "Law05_Tokens", Says: "want at least",
		Fault: "Each session counts for itself.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && g.Fence != 0 {
					g.Fence = driver.Stride * s.counter.Add(1)
				}
				return g, err
			}}
		},
	},
	{
		Name: "AskingDrawsAgain", Law: "Law05_Tokens", Says: "and Acquire",
		Fault: "A claim that is asked for again has another token.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && g.Held && s.known(c.ID).Held && g.Fence != 0 {
					g.Fence++
				}
				return g, err
			}}
		},
	},
	{
		Name: "ForgetsTokens", Law: "Law05_Tokens", Says: "want at least",
		Fault: "The counter is lost in a restart, and the traits say that it is durable.",
		new:   func() *fault { return &fault{traits: durable} },
		twin:  func() *fault { return &fault{traits: durable, restart: sameStore} },
	},
	{
		Name: "ReadersHaveTokens", Law: "Law05_Tokens", Says: "only exclusive claims have tokens",
		Fault: "A read claim is told the counter as it stands.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err == nil && g.Held && c.Kind == driver.Read {
					g.Fence = 1
				}
				return g, err
			}}
		},
	},
	{
		Name: "ClaimsTokens", Law: "Law05_Tokens", Says: "without a token",
		Fault: "The traits say that there are tokens, and there are none.",
		store: memlock.Personality{NoFence: true},
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Fence = driver.UntilRestart }} },
	},
	{
		Name: "ClaimsNoTokens", Law: "Law05_Tokens", Says: "from a store that promises none",
		Fault: "The traits say that there are no tokens, and there are.",
		new:   func() *fault { return &fault{traits: func(t *driver.Traits) { t.Fence = driver.NoFence }} },
	},
}

// tokensBy tells of in the place of every token.
func tokensBy(of func(*session, uint64) uint64) *fault {
	tell := func(s *session, g driver.Grant, err error) (driver.Grant, error) {
		if err == nil && g.Fence != 0 {
			g.Fence = of(s, g.Fence)
		}
		return g, err
	}
	return &fault{
		acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := s.acquire(ctx, c)
			return tell(s, g, err)
		},
		wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := s.Session.Wait(ctx, c)
			return tell(s, g, err)
		},
	}
}

func durable(t *driver.Traits) { t.Fence = driver.Durable }
