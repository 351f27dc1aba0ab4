package redislock

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is one liveness: the TTL of all its claims. The server knows nothing of it.
type session struct {
	d       *Driver
	ttl     time.Duration
	ttlMS   string
	keepMS  string // how long a line outlives its last visitor
	timeout time.Duration
	owner   []byte

	sessions.Alarm

	mu      sync.Mutex
	claims  sessions.Claims[*claim]
	names   map[string]keys // some of those that were used
	closed  bool
	partial bool // the last renewal was not answered for some claims
}

func newSession(d *Driver, spec driver.Spec) *session {
	ttl := spec.TTL.Truncate(time.Millisecond)
	return &session{
		d: d, ttl: ttl, ttlMS: strconv.FormatInt(ttl.Milliseconds(), 10),
		keepMS:  strconv.FormatInt(max(3*ttl, time.Hour).Milliseconds(), 10),
		timeout: min(d.options.Timeout, ttl), owner: spec.Owner.Encode(),
		Alarm: sessions.NewAlarm(), claims: sessions.Claims[*claim]{}, names: map[string]keys{},
	}
}

// Valid implements driver.Session: the TTL less the drift between the server's clock and ours, as Redlock reckons it.
// Source: "Distributed Locks with Redis", redis.io.
func (s *session) Valid() time.Duration {
	return s.ttl - s.ttl/100 - 2*time.Millisecond
}

// check refuses a claim that cannot be kept.
func check(c driver.Claim) error {
	if len(c.ID) != idLen {
		return fmt.Errorf("redislock: claim ID of %d bytes: want %d, as driver.NewID makes them: %w", len(c.ID), idLen, driver.ErrRefused)
	}
	return redisstore.CheckName("redislock", c.Name)
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
	return &claim{Claim: c, keys: s.keys(c.Name), since: time.Now()}
}

// keys returns where a name is kept, and remembers it: most sessions lock few names, again and again. s.mu is held.
func (s *session) keys(name string) keys {
	k, ok := s.names[name]
	if !ok {
		if len(s.names) >= 1024 {
			clear(s.names)
		}
		k = keysOf(name)
		s.names[name] = k
	}
	return k
}

// forget drops a claim that does not stand in the store any more, or never did. s.mu is held.
func (s *session) forget(c *claim) {
	if s.claims.Forget(c.ID, c) && c.Queue {
		s.d.audience.Remove(c.ID)
	}
}

// fly makes one call for c, after the one before.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	return c.Fly(ctx, &s.mu, s.d.conn.Abandons(), s.timeout, call)
}

// info is what a claim tells people.
func (s *session) info(c *claim, channel string) redisstore.Info {
	return redisstore.Info{Owner: s.owner, Kind: redisstore.Letter(c.Kind), Note: c.Note, Passes: c.Passes, Channel: channel}
}

// promoted takes in that a claim was granted by whoever left before it.
func (s *session) promoted(id string, counter int64, crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[id]
	if c != nil && !c.Leaving {
		s.d.crowd.Set(c.Name, crowded)
		c.admit(counter)
	}
}

// gap takes in that the claim is the head of the line and is to look after some ms; negative is never.
func (s *session) gap(id string, ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[id]; c != nil && c.state <= waiting {
		c.anew = true // by an answer under way, which knows nothing of the gap
		c.recheck.Schedule(time.Now(), ms, true, redisstore.BehindGap)
		c.change.Give()
	}
}

// told takes in that an operator broke a claim, if it is one of this session: it was taken out of the line, or was marked,
// and then a renewal says what became of it.
func (s *session) told(m redisstore.Message) {
	s.mu.Lock()
	c := s.claims[m.ID]
	switch {
	case c == nil || c.Leaving:
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

// deafened has every claim that stands in a line with e's channel ask again: messages for it may have been lost. What is held at that
// master is renewed at once, and as soon as the master is heard again: if it was restarted, it may have forgotten who holds.
func (s *session) deafened(e *ear) {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds := false
	for _, c := range s.claims {
		switch {
		case c.state == waiting && c.ear == e:
			c.ask()
		case c.state == held && !c.Leaving:
			holds = holds || s.d.conn.Node(c.Name) == e.node
		}
	}
	if holds {
		s.Hurry()
		s.d.holding.Began()
	}
}

// Close implements driver.Session.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	leaving := s.claims.AllLeaving()
	s.mu.Unlock()
	for _, c := range leaving { // a request under way may put a claim into the line
		c.Rest(ctx, &s.mu)
	}
	err := s.leaveAll(ctx, leaving)
	s.d.sessions.Remove(s)
	return err
}
