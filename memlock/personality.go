package memlock

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Personality says in which ways a store is worse than the reference. Its zero value is the reference itself.
type Personality struct {
	Clamp    time.Duration // a session gets at most this TTL
	Round    time.Duration // TTLs are rounded down to a multiple of this
	NoExpiry bool          // claims of a session that nobody renews stay
	NoOrder  bool          // who came last is granted first
	NoFence  bool          // there are no tokens
	NoShared bool          // there are no read claims
	NoCount  bool          // there are no permits
	Notices  Notices
}

// Notices says how waiters hear of their grants.
type Notices uint8

// The ways in which a notice can go.
const (
	Prompt  Notices = iota // once, at the grant
	Lost                   // never: only Renew finds the grant
	Doubled                // twice
	Early                  // at every change of the line, granted or not
)

const (
	minTTL = 10 * time.Millisecond
	maxTTL = 24 * time.Hour
)

// grant returns the TTL that a session gets which asks for ttl.
func (p Personality) grant(ttl time.Duration) time.Duration {
	if p.Clamp > 0 {
		ttl = min(ttl, p.Clamp)
	}
	if p.Round > 0 {
		ttl = max(ttl.Truncate(p.Round), p.Round)
	}
	return ttl
}

func (p Personality) traits() driver.Traits {
	t := driver.Traits{
		Ordered: !p.NoOrder, Shared: !p.NoShared, Counted: !p.NoCount, Mixed: true,
		Events: driver.AllKinds, Expires: !p.NoExpiry,
		Fence: driver.UntilRestart, MinTTL: minTTL, MaxTTL: maxTTL,
		Survives: driver.Survival{},
	}
	if p.Notices == Lost {
		t.Events = 0
	}
	if p.NoFence {
		t.Fence = driver.NoFence
	}
	if p.Round > 0 {
		t.MinTTL = max(minTTL, p.Round)
	}
	return t
}

// admits refuses the claims of kinds that the store lacks.
func (p Personality) admits(c driver.Claim) error {
	if c.Kind == driver.Read && p.NoShared || c.Kind == driver.Permit && p.NoCount {
		return fmt.Errorf("memlock: this store has no %s claims: %w", c.Kind, driver.ErrRefused)
	}
	return nil
}
