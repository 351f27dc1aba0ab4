package redlock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is one liveness: the TTL of all its claims. The masters know nothing of it.
type session struct {
	d       *Driver
	ttl     time.Duration
	ttlMS   string
	keepMS  string        // how long a line outlives its last visitor
	timeout time.Duration // of one master
	owner   []byte

	sessions.Alarm

	mu     sync.Mutex
	claims sessions.Claims[*claim]
	said   readings
	closed bool
}

func newSession(d *Driver, spec driver.Spec) *session {
	ttl := spec.TTL.Truncate(time.Millisecond)
	return &session{
		d: d, ttl: ttl, ttlMS: strconv.FormatInt(ttl.Milliseconds(), 10),
		keepMS:  strconv.FormatInt(max(3*ttl, time.Hour).Milliseconds(), 10),
		timeout: min(d.options.NodeTimeout, ttl/3), owner: spec.Owner.Encode(),
		Alarm: sessions.NewAlarm(), claims: sessions.Claims[*claim]{}, said: readings{},
	}
}

// Valid implements driver.Session: the TTL less the drift between the clocks of the masters and ours, 1 % and 2 ms.
// Source: "Distributed Locks with Redis", redis.io.
func (s *session) Valid() time.Duration { return s.ttl - s.ttl/100 - 2*time.Millisecond }

// check refuses a claim that cannot be kept.
func check(c driver.Claim) error {
	if len(c.ID) != idLen {
		return fmt.Errorf("redlock: claim ID of %d bytes: want %d, as driver.NewID makes them: %w", len(c.ID), idLen, driver.ErrRefused)
	}
	if !c.Kind.Exclusive() {
		return fmt.Errorf("redlock: a %s claim: want a mutex: two majorities can let in one reader or permit too many: %w", c.Kind, driver.ErrRefused)
	}
	return redisstore.CheckName("redlock", c.Name)
}

// claim returns what is known of c, from now on at least its ID.
func (s *session) claim(c driver.Claim) (*claim, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return s.newClaim(c) }), nil
}

func (s *session) newClaim(c driver.Claim) *claim {
	k := keysOf(c.Name)
	return &claim{
		Claim: c, keys: k, all: k.all(), ticket: fmt.Sprintf("%016d", s.d.ticket()), info: infoOf(c, s.owner),
		spots: make([]spot, len(s.d.nodes)), change: sessions.NewSignal(),
	}
}

// forget drops a claim that does not stand in the store any more, or never did. s.mu is held.
func (s *session) forget(c *claim) {
	if s.claims.Forget(c.ID, c) && c.Queue {
		s.d.audience.Remove(c.ID)
	}
}

// promoted takes in that a master was given to a claim by whoever left before it. The master has put the claim in line
// after it was asked to, so the claim's time there does not run from before that.
func (s *session) promoted(n *node, id string, counter int64, crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[id]
	if c == nil || c.leaving {
		return
	}
	s.d.crowd.Set(c.Name, crowded)
	sp := &c.spots[n.i]
	sp.given(counter, sp.known)
	s.step(c)
}

// asked takes in that a claim with an older ticket waits for a master. One that has its majority, or is about to, ignores it.
func (s *session) inquired(n *node, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[id]; c != nil {
		c.spots[n.i].asked = true // the question may overtake the answer that gives it the master
		s.yield(c, n)
	}
}

// gap takes in that the claim is the head of the line and is to look after some ms.
func (s *session) gap(n *node, id string, ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[id]; c != nil && !c.spots[n.i].has {
		c.spots[n.i].anew = true // by an answer under way, which knows nothing of the gap
		c.spots[n.i].recheck.Schedule(time.Now(), ms, true, redisstore.BehindGap)
		c.change.Give()
	}
}

// told takes in that an operator broke a claim, if it is one of this session: it was taken out of the line, or was marked,
// and then a renewal says what became of it.
func (s *session) told(m redisstore.Message) {
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

// unheard has every claim that waits for a master ask there again: it was not asked before the subscription there was
// confirmed, or messages for it were lost when that ended.
func (s *session) unheard(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, c := range s.claims {
		sp := &c.spots[n.i]
		if !c.Queue || c.state > waiting || sp.has {
			continue
		}
		sp.recheck.At = now // also after the answer to a question that is under way, which was asked with another channel: see heard
		c.change.Give()
		// An Acquire under way may need this master for its majority: others that have confirmed may be silent by now.
		if f := c.flight; f != nil && f.joins && !f.ended && !c.leaving && sp.pending == 0 && f.failed&(1<<n.i) != 0 && n.confirms() {
			f.failed &^= 1 << n.i
			s.ask(c, n, f)
		}
	}
}

// deafened has a session that holds something at a master ask now whether it still does: the subscription there has ended, or stands
// again after that. A master that was restarted may have forgotten who holds; and that an operator broke a claim was told to nobody.
func (s *session) deafened(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds, _ := s.standing()
	if slices.ContainsFunc(holds, func(c *claim) bool { return c.spots[n.i].has }) {
		s.Hurry()
	}
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	leaving := s.claims.AllLeaving()
	s.mu.Unlock()
	var err error
	flights := make([]*flight, len(leaving))
	for i, c := range leaving {
		flights[i] = s.leave(c)
	}
	for i, c := range leaving {
		if _, e := s.departed(ctx, c, flights[i]); e != nil && err == nil {
			err = e
		}
	}
	s.d.sessions.Remove(s)
	return err
}
