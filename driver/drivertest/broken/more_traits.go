package broken

import (
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// moreTraits are stores that promise what they do not keep, or keep what they do not promise.
var moreTraits = []Driver{
	{
		Name: "TraitsChange", Law: "Also_Traits", Says: "the traits have changed from",
		Fault: "The traits are those of a server of which nothing is known until it was asked, and change then.",
		new: func() *fault {
			var asked atomic.Int64
			return promising(func(t *driver.Traits) {
				if asked.Add(1) > 3 {
					t.MaxTTL = time.Hour
				}
			})()
		},
	},
	{
		Name: "ClaimsNoPermits", Law: "Law01_Rule", Says: "was answered with held, want an error that matches ErrRefused",
		Fault: "The traits say that there are no permits, and there are.",
		new:   promising(func(t *driver.Traits) { t.Counted = false }),
	},
	{
		Name: "ClaimsMixed", Law: "Law01_Rule", Says: "and got an error although nothing was wrong",
		Fault: "The traits say that mutexes mix with read/write locks, and they are refused.",
		new: func() *fault {
			f := apartFault()
			f.traits = nil
			return f
		},
	},
	{
		Name: "ClaimsNoLeastTTL", Law: "Also_Traits", Says: "the bounds of the TTL are",
		Fault: "The traits have no least TTL.",
		new:   promising(func(t *driver.Traits) { t.MinTTL = 0 }),
	},
	{
		Name: "ClaimsSmallTTL", Law: "Also_Traits", Says: "bounds could not open a session: memlock: TTL 1ms",
		Fault: "The traits say that a millisecond is enough of a TTL, and it is refused.",
		new:   promising(func(t *driver.Traits) { t.MinTTL = time.Millisecond }),
	},
	{
		Name: "ClaimsAnyTTL", Law: "Also_Traits", Says: "bounds could not open a session: memlock: TTL 720h0m0s",
		Fault: "The traits say that a TTL has no limit, and two days are refused.",
		new:   promising(func(t *driver.Traits) { t.MaxTTL = 0 }),
	},
	{
		Name: "ClaimsLongTTL", Law: "Also_Traits", Says: "bounds could not open a session: memlock: TTL 168h0m0s",
		Fault: "The traits say that a TTL may be a week, and two days are refused.",
		new:   promising(func(t *driver.Traits) { t.MaxTTL = 7 * 24 * time.Hour }),
	},
	{
		Name: "ClaimsSurvivalOfProcess", Law: "Law08_Expiry", Says: "and Traits.Survives.Process not be true",
		Fault: "The traits say that claims survive their process, and they go with it.",
		new: func() *fault {
			return &fault{kill: endSessions, traits: func(t *driver.Traits) {
				t.Survives.Process, t.Notice = true, 100*time.Millisecond
			}}
		},
		twin: func() *fault { return &fault{kill: endSessions, traits: noticing} },
	},
	{
		Name: "ClaimsSingle", Law: "Law05_Tokens", Says: "without a token",
		Fault: "The traits say that a grant reserves one token, and the store has no tokens at all.",
		store: memlock.Personality{NoFence: true},
		new:   promising(func(t *driver.Traits) { t.Single, t.Fence = true, driver.UntilRestart }),
	},
	{
		Name: "NegativeGrain", Law: "Also_Traits", Says: "and the notice of death",
		Fault: "The grain is negative.",
		new:   promising(func(t *driver.Traits) { t.Grain = -time.Second }),
	},
	{
		Name: "LeastAboveMost", Law: "Also_Traits", Says: "the bounds of the TTL are",
		Fault: "The least TTL is more than the most.",
		new:   promising(func(t *driver.Traits) { t.MinTTL, t.MaxTTL = time.Minute, time.Second }),
	},
}

// promising is a store with other traits.
func promising(of func(*driver.Traits)) func() *fault {
	return func() *fault { return &fault{traits: of} }
}
