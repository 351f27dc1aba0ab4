package redlock

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// granted handles the message that a master was given to a claim by the one that left before it.
// The master has put the claim in line after it was asked to, so the claim's time there does not
// run from before that.
func (s *session) granted(n *node, id string, counter int64, hasWaiters bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[id]
	if c == nil || c.leaving {
		return
	}
	s.d.contended.Set(c.Name, hasWaiters)
	ns := &c.nodes[n.i]
	ns.given(counter, ns.known)
	s.step(c)
}

// inquired handles the message that a claim with an older ticket waits for a master. One that has
// its majority, or is about to, ignores it.
func (s *session) inquired(n *node, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[id]; c != nil {
		c.nodes[n.i].asked = true // the question may overtake the answer that gives it the master
		s.yield(c, n)
	}
}

// deferHead handles the message that the claim is the head of the line, and asks again after some
// ms: until then the name is left free for other programs.
func (s *session) deferHead(n *node, id string, ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[id]; c != nil && !c.nodes[n.i].has {
		c.nodes[n.i].anew = true // by an answer under way, which knows nothing of the gap
		c.nodes[n.i].recheck.Schedule(time.Now(), ms, true, redisstore.BehindGap)
		c.change.Give()
	}
}

// onBreak handles the message that an operator broke a claim, if it is one of this session: it was
// taken out of the line, or was marked, and then a renewal says what became of it.
func (s *session) onBreak(m redisstore.Message) {
	s.mu.Lock()
	c := s.claims[m.ID]
	switch {
	case c == nil || c.leaving || c.state >= gone:
		s.mu.Unlock()
	case m.Letter == "n":
		s.mu.Unlock()
		s.Hurry()
	default:
		c.end(broken)
		loss := c.loss()
		s.mu.Unlock()
		s.Lose(loss)
	}
}

// recheckWaiters lets every claim that waits for a master ask there again: it was not asked before
// the subscription there was confirmed, or messages for it were lost when that ended.
func (s *session) recheckWaiters(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, c := range s.claims {
		ns := &c.nodes[n.i]
		if !c.Queue || c.state > waiting || ns.has {
			continue
		}
		ns.recheck.At = now // also after the answer to a question that is under way, which was asked with another channel: see heard
		c.change.Give()
		// An Acquire under way may need this master for its majority: others that have confirmed
		// may be silent by now.
		if f := c.acquiring; f != nil && f.joins && !f.ended && !c.leaving && ns.pending == 0 && f.failed&(1<<n.i) != 0 && n.subscribed() {
			f.failed &^= 1 << n.i
			s.ask(c, n, f)
		}
	}
}

// subscriptionLost requests a renewal if something is held at a master: the subscription there has
// ended, or stands again after that. A master that was restarted may have forgotten who holds; and
// that an operator broke a claim was told to nobody.
func (s *session) subscriptionLost(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds, _ := s.live()
	if slices.ContainsFunc(holds, func(c *claim) bool { return c.nodes[n.i].has }) {
		s.Hurry()
	}
}

// forgotten drops what claims that are not held yet have got of a master that has lost its memory.
func (d *shared) forgotten(n *node) {
	for _, s := range d.sessions.All() {
		s.mu.Lock()
		for _, c := range s.claims {
			if ns := &c.nodes[n.i]; c.state < held && ns.has {
				ns.lacks(ns.counter)
				c.asks(n)
			}
		}
		s.mu.Unlock()
	}
}

// message handles a message for a claim.
func (d *shared) message(n *node, payload string) {
	m, s, ok := d.audience.Find(payload)
	if m.Letter == "x" || m.Letter == "n" { // gone, or broken with its time left to finish: also a claim that never waited
		for _, s := range d.sessions.All() {
			s.onBreak(m)
		}
		return
	}
	if !ok {
		return
	}
	switch m.Letter {
	case "h": // has this master: counter, and whether others wait
		s.granted(n, m.ID, m.Numbers[0], m.Numbers[1] == 1)
	case "i": // one with an older ticket waits
		s.inquired(n, m.ID)
	case "g": // the first in line is to look: after so many ms, as when a gap for other programs ends
		s.deferHead(n, m.ID, m.Numbers[0])
	}
}

// subscribed lets every claim that waits ask at a master that has confirmed the subscription: one
// that came before that stands in the lines of the other masters only.
func (d *shared) subscribed(n *node, again bool) {
	for _, s := range d.sessions.All() {
		s.recheckWaiters(n)
		if again {
			s.subscriptionLost(n)
		}
	}
}

// subscriptionLost lets every claim that relied on the subscription ask again, and what is held,
// too. While something is held a subscription that failed is tried again.
func (d *shared) subscriptionLost(n *node, confirmed bool) {
	for _, s := range d.sessions.All() {
		s.recheckWaiters(n)
		if confirmed {
			s.subscriptionLost(n)
		}
	}
	d.holding.Began()
}
