package interlock

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// A store may keep sessions for another time than it is asked for, beyond what its traits say: a server has a limit of its own, or a
// greater least. That is known once a session was opened, and is shown from then on: by Lease.Until, by Err where a grace was chosen
// that does not go with it, and once in the log where a TTL was chosen and comes out as less than half of it, or as more than twice.

// given takes in for how long the store keeps a session that was asked for with ttl.
func (c *Client) given(ttl, valid time.Duration) {
	before, known := c.gave.Swap(ttl, valid)
	if known && before == valid || c.anyTTL && ttl == c.opts.TTL {
		return
	}
	if valid < ttl/2 || valid/2 > ttl {
		c.log(slog.LevelWarn, "interlock: the store keeps locks for another time than their TTL", "ttl", ttl, "kept", valid)
	}
}

// why is the reason why nobody can lock h, or nil.
func (h *handle) why() error {
	if h.err != nil || h.settings.anyGrace {
		return h.err
	}
	if valid, known := h.client.gave.Load(h.settings.ttl); known && h.settings.grace > longestGiven(valid.(time.Duration)) {
		return &Error{Op: "lock", Name: h.name, Err: noSuchGrace(valid.(time.Duration))}
	}
	return nil
}

// longestGiven is the longest grace with a session that the store keeps for valid: always a little less than its TTL.
func longestGiven(valid time.Duration) time.Duration { return valid / 5 * 2 }

func noSuchGrace(valid time.Duration) error {
	return fmt.Errorf("the store keeps a session for %v, so there is no grace above two fifths of that: %w", valid, errors.ErrUnsupported)
}
