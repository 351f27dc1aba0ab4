package redislock

import (
	"time"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// session is a session of this layout, and what a message does to its claims.
type session struct {
	redisstore.Session[*claim]

	d       *Driver
	partial bool // the last renewal was not answered for some claims; Mu guards it
}

// heard handles a message.
func (d *Driver) heard(payload string) {
	m, s, ok := d.audience.Find(payload)
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
	case "g": // the first in line is to look: after so many ms, as when a gap for other programs ends
		s.deferFirst(m.ID, m.Numbers[0])
	case "r": // passed over: the slot has moved to a master that this process does not listen to
		d.store.Conn.Doubt()
		s.ask(m.ID)
	}
}

// granted records that a claim was let in by the one that left before it.
func (s *session) granted(id string, counter int64, crowded bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.Claims[id]
	if c != nil && !c.Leaving {
		s.d.crowd.Set(c.Name, crowded)
		c.admit(counter)
	}
}

// deferFirst has the claim, which is the first in line, ask after some ms; negative is never.
func (s *session) deferFirst(id string, ms int64) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.Claims[id]; c != nil && c.State <= redisstore.Waiting {
		c.stale = true // an answer that is under way knows nothing of this
		c.recheck.Schedule(time.Now(), ms, true, redisstore.BehindGap)
		c.Change.Give()
	}
}

// ask has a waiting claim ask for its state.
func (s *session) ask(id string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.Claims[id]; c != nil {
		c.ask()
	}
}

// broken handles the message that an operator broke a claim, if it is one of this session. Where it was
// only marked, a renewal says what became of it.
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

// unsubscribed handles the end of a subscription: messages may have been lost. What waits with its channel
// asks. What is held at its master is renewed at once, and again as soon as the master is heard: if it was
// restarted, it may have forgotten who holds.
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

// slotsMoved has claims ask whose slot has moved to another master, which cannot reach the channel that
// stands beside them in line.
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
