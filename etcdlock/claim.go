package etcdlock

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// state is how a claim stands.
type state uint8

const (
	out     state = iota // or nothing is known
	waiting              // in line
	held
	broken // by an operator
	gone   // was in line, and is not any more
)

// claim is one claim of a session. Its state only moves forward, whatever order events and answers come in. Everything here is guarded
// by the session's mutex.
type claim struct {
	driver.Claim
	s      *session
	key    string // its place in the line; kept until it has left
	value  string // of its key, as it was put
	state  state
	grant  driver.Grant
	create int64 // its key's create revision, from when it is in line
	deep   bool  // when it came, there were too many before it to hear of all of them
	missed bool  // an event has said that its key is gone, and not why
	retire bool  // a request that deletes its key had no answer, and may still arrive
	late   bool  // a request that puts it in line had no answer, and may still arrive

	change sessions.Signal // wakes its Wait

	sessions.Departure
}

// entry is what the claim's key says that was put at a revision.
func (c *claim) entry(create int64) entry {
	return entry{
		value: value{ID: driver.PublicID(c.ID), Kind: c.Kind, Weight: c.Weight, Limit: c.Limit}, key: c.key, lease: c.s.lease, create: create, mod: create,
	}
}

// admit moves the claim to held.
func (c *claim) admit(fence uint64) {
	if c.state <= waiting {
		c.state, c.grant = held, driver.Grant{Held: true, Fence: fence}
		c.change.Give()
	}
}

// end moves the claim to gone or broken.
func (c *claim) end(s state) {
	if c.state < broken {
		c.state = s
		c.change.Give()
	}
}

// stands takes in how the claim stands in its line, and reports whether it does.
func (c *claim) stands(l *line) (bool, error) {
	i := l.find(c.key)
	if i < 0 || c.create != 0 && l.entries[i].create != c.create {
		return false, nil
	}
	c.create = l.entries[i].create
	token, err := fence(c.Kind, c.create)
	if err != nil { // also of one that waits: it could never be let in
		return true, err
	}
	switch {
	case l.entries[i].Broken:
		c.end(broken)
	case l.holds(i):
		c.admit(token)
	case c.state < waiting:
		c.state = waiting
	}
	return true, nil
}
