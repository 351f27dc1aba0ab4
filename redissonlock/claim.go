package redissonlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

type state uint8

const (
	unsent  state = iota // or answered that it is not there
	waiting              // noted as one that waits
	held
	gone   // was there, and is not any more
	broken // by an operator
)

// claim is one claim of a session. Its state only moves forward, whatever order answers come in. Everything here is
// guarded by the driver's mutex.
type claim struct {
	driver.Claim
	keys  keys
	field string

	state  state
	fence  uint64
	holder *driver.Holder
	news   bool // holder is another than Acquire or Wait have told
	doubt  bool // a request for it had no answer and may still be carried out

	room   *room           // while it waits
	change sessions.Signal // wakes its Wait

	sessions.Departure
}

// known says what the script is to know of the claim's past: see take.lua.
func (c *claim) known() string {
	switch c.state {
	case waiting:
		return "w"
	case held:
		return "h"
	}
	return ""
}

// stands reports whether the claim holds or waits, as far as is known here.
func (c *claim) stands() bool { return (c.state == held || c.state == waiting) && !c.Leaving }

func (c *claim) grant() driver.Grant {
	if c.state == held {
		return driver.Grant{Held: true, Fence: c.fence}
	}
	return driver.Grant{Holder: c.holder}
}

// admit moves the claim to held.
func (c *claim) admit(token uint64, now time.Time) {
	if c.state > held {
		return
	}
	c.state, c.fence, c.holder, c.news = held, token, nil, false
	c.exit(now)
	c.change.Give()
}

// loss is the claim as one that is lost.
func (c *claim) loss() driver.Loss {
	if c.state == broken {
		return driver.Loss{ID: c.ID, Err: driver.ErrBroken}
	}
	return driver.Loss{ID: c.ID, Err: driver.ErrGone}
}

// end moves the claim to gone or broken.
func (c *claim) end(s state, now time.Time) {
	c.exit(now)
	if c.state < gone {
		c.state, c.fence = s, 0
		c.change.Give()
	}
}

// exit takes the claim out of the room in which it waits.
func (c *claim) exit(now time.Time) {
	if r := c.room; r != nil {
		c.room = nil
		r.leave(c, now)
	}
}
