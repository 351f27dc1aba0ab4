package redislock

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// claim is one claim of a session. The session's mutex guards it.
type claim struct {
	redisstore.Claim
	keys keys

	created time.Time                // when the process first knew of it
	counted time.Time                // when its counter was last given more time, once it holds
	sub     *redisstore.Subscription // whose channel is in its record
	recheck redisstore.Recheck       // when it asks by itself
	stale   bool                     // it has to ask, whatever an answer in flight says: that may be older
}

func newClaim(c driver.Claim) *claim {
	return &claim{Claim: redisstore.NewClaim(c), keys: keysOf(c.Name), created: time.Now()}
}

// check returns an error for a claim that the store cannot keep.
func check(c driver.Claim) error {
	if len(c.ID) != idLen {
		return fmt.Errorf("redislock: claim ID of %d bytes: want %d, as driver.NewID makes them: %w", len(c.ID), idLen, driver.ErrRefused)
	}
	return redisstore.CheckName("redislock", c.Name)
}

// exclusive reports whether the claim is kept as the value of the name itself.
func (c *claim) exclusive() bool { return c.Kind.Exclusive() }

// ask makes a claim that waits, or is about to, ask for its state.
func (c *claim) ask() {
	if c.State <= redisstore.Waiting {
		c.stale, c.recheck.At = true, time.Now()
		c.Change.Give()
	}
}

// subscriptionLost reports whether the channel of sub, with which a request was sent, is of no use
// in the claim's record: sub is lost, perhaps before the claim relied on it, or the claim relies on
// another one by now.
func (c *claim) subscriptionLost(sub *redisstore.Subscription) bool {
	return sub != nil && (sub != c.sub || sub.Lost())
}

// admit records that the claim is held. counter is the highest of the tokens that the grant has
// drawn.
func (c *claim) admit(counter int64) {
	fence := uint64(0)
	if c.exclusive() {
		fence = lowest(counter)
	}
	if c.Admit(fence) {
		c.recheck, c.counted = redisstore.Recheck{}, time.Now()
	}
}

func lowest(counter int64) uint64 { return uint64(counter) - driver.Stride + 1 } //nolint:gosec // a counter of ours
