package redislock

import (
	"time"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// session is a session of this layout, with the effects of messages on its claims.
type session struct {
	redisstore.Session[*claim]

	d       *Driver
	partial bool // the last renewal was not answered for some claims; Mu guards it
}

// onMessage handles a message.
func (d *Driver) onMessage(payload string) {
	m, s, ok := d.receivers.Find(payload)
	if m.Letter == "x" || m.Letter == "n" { // gone, or broken with its time left to finish: also a claim that never waited
		for _, s := range d.sessions.All() {
			s.broken(m)
		}
		return
	}
	if !ok {
		return
	}
	switch m.Letter {
	case "h": // held: counter, and whether others wait
		s.granted(m.ID, m.Numbers[0], m.Numbers[1] == 1)
	case "g": // the first in line has to ask: after so many ms, as when a gap for other programs ends
		s.deferHead(m.ID, m.Numbers[0])
	case "r": // passed over: the slot has moved to a master that this process does not listen to
		d.store.Conn.Doubt()
		s.ask(m.ID)
	}
}

// granted handles the message that a release has handed the lock to a claim.
func (s *session) granted(id string, counter int64, contended bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.Claims[id]
	if c != nil && !c.Leaving {
		s.d.contended.Set(c.Name, contended)
		c.admit(counter)
	}
}

// deferHead makes the claim, which is the first in line, ask after ms milliseconds; negative is
// never.
func (s *session) deferHead(id string, ms int64) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.Claims[id]; c != nil && c.State <= redisstore.Waiting {
		c.stale = true // an answer in flight may be older than this
		c.recheck.Schedule(time.Now(), ms, true, redisstore.BehindGap)
		c.Change.Give()
	}
}

// ask makes a waiting claim ask for its state.
func (s *session) ask(id string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.Claims[id]; c != nil {
		c.ask()
	}
}

// broken handles the message that an operator broke a claim, if it is one of this session. If it
// was only marked, a renewal returns its state.
func (s *session) broken(m redisstore.Message) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.Claims[m.ID]
	switch {
	case c == nil || c.Leaving:
	case m.Letter == "n":
		s.Hurry()
	default:
		c.End(redisstore.Broken)
		s.Lose(c.Loss())
	}
}

// unsubscribed handles the end of a subscription: messages may have been lost. Claims that wait
// with its channel ask. Claims held at its master are renewed at once, and again when there is
// another subscription: a master that was restarted may have lost them.
func (d *Driver) unsubscribed(sub *redisstore.Subscription) {
	for _, s := range d.sessions.All() {
		if s.unsubscribed(sub) {
			s.Hurry()
			d.subs.Began()
		}
	}
}

// unsubscribed reports whether something is held at the master of sub.
func (s *session) unsubscribed(sub *redisstore.Subscription) (holds bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.Claims {
		switch {
		case c.State == redisstore.Waiting && c.sub == sub:
			c.ask()
		case c.State == redisstore.Held && !c.Leaving:
			holds = holds || s.d.store.Conn.Node(c.Name) == sub.Node
		}
	}
	return holds
}

// slotsMoved makes claims ask whose slot has moved to another master, where the channel in their
// record has no subscriber.
func (d *Driver) slotsMoved() {
	for _, s := range d.sessions.All() {
		s.slotsMoved()
	}
}

func (s *session) slotsMoved() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.Claims {
		if c.State <= redisstore.Waiting && c.sub != nil && c.sub.Node != s.d.store.Conn.Node(c.Name) {
			c.ask()
		}
	}
}
