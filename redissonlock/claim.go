package redissonlock

import (
	"time"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// claim is one claim of a session. The mutex of groups guards it.
type claim struct {
	redisstore.Claim
	keys  keys
	field string // in the hash

	group *group // while it waits
}

// Depart implements sessions.Leaver.
func (c *claim) Depart() {
	c.Departure.Depart()
	c.exit(time.Now())
}

// known returns what the script needs to know of the claim's past: see take.lua.
func (c *claim) known() string {
	switch c.State {
	case redisstore.Waiting:
		return "w"
	case redisstore.Held:
		return "h"
	}
	return ""
}

// admit moves the claim to Held.
func (c *claim) admit(token uint64, now time.Time) {
	c.exit(now)
	c.Admit(token)
}

// end moves the claim to Gone or Broken.
func (c *claim) end(s redisstore.State, now time.Time) {
	c.exit(now)
	c.End(s)
}

// exit removes the claim from the group in which it waits.
func (c *claim) exit(now time.Time) {
	if g := c.group; g != nil {
		c.group = nil
		g.remove(c, now)
	}
}
