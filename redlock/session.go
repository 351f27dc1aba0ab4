package redlock

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

// session is one liveness: the TTL of all its claims. The masters know nothing of it.
type session struct {
	d       *shared
	ttl     time.Duration
	ttlMS   string
	keepMS  string        // how long a line outlives its last visitor
	timeout time.Duration // of one master
	owner   []byte

	sessions.Alarm

	mu     sync.Mutex
	claims sessions.Claims[*claim]
	said   *redisstore.Reader // what holders wrote, which are few; made anew by read
	reads  int
	closed bool
}

func newSession(d *shared, spec driver.Spec) *session {
	ttl := spec.TTL.Truncate(time.Millisecond)
	return &session{
		d: d, ttl: ttl, ttlMS: strconv.FormatInt(ttl.Milliseconds(), 10),
		keepMS:  strconv.FormatInt(max(3*ttl, time.Hour).Milliseconds(), 10),
		timeout: min(d.options.NodeTimeout, ttl/3), owner: spec.Owner.Encode(),
		Alarm: sessions.NewAlarm(), claims: sessions.Claims[*claim]{},
	}
}

// Valid implements driver.Session: the TTL less the drift between the clocks of the masters and
// ours, 1 % and 2 ms. Source: "Distributed Locks with Redis", redis.io.
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
		nodes: make([]nodeState, len(s.d.nodes)), change: sessions.NewSignal(),
	}
}

// forget drops a claim that does not stand in the store any more, or never did. s.mu is held.
func (s *session) forget(c *claim) {
	if s.claims.Forget(c.ID, c) && c.Queue {
		s.d.audience.Remove(c.ID)
	}
}

// await returns when the call is over or its caller gives up.
func (s *session) await(ctx context.Context, f *inflight, over func() bool) error {
	s.mu.Lock()
	f.over = over
	f.check()
	s.mu.Unlock()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return s.unfinished(f, ctx.Err())
	}
}

// unfinished is the error of a call whose caller gives up, with what it has heard.
func (s *session) unfinished(f *inflight, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("redlock: %d of %d masters have answered so far", f.answered(), len(s.d.nodes))
	if f.err != nil {
		text += ": " + f.err.Error()
	}
	return fmt.Errorf("%s: %w", text, err)
}

// linger waits for the masters that have not answered yet, until their answers are late. One that
// is waited for in vain is late from then on: nobody waits for it until it has answered in time.
func (s *session) linger(ctx context.Context, f *inflight, patience time.Duration) {
	s.mu.Lock()
	f.late = lateness(patience)
	f.awaits = f.missing()
	for _, n := range s.d.nodes {
		if n.unresponsive() {
			f.awaits &^= 1 << n.i
		}
	}
	some, limit := f.awaits != 0, time.Until(f.late)
	s.mu.Unlock()
	if !some {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-f.rest:
	case <-timer.C:
		s.mu.Lock()
		for _, n := range s.d.nodes {
			if f.awaits&f.missing()&(1<<n.i) != 0 {
				n.markLate()
			}
		}
		s.mu.Unlock()
	case <-ctx.Done():
	}
}

func (s *session) state(c *claim) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.state {
	case gone:
		return driver.Grant{}, driver.ErrGone
	case broken:
		return driver.Grant{}, driver.ErrBroken
	case unsent:
		s.forget(c)
	}
	return c.grant(s.read()), nil
}

// readsMax is how many holders are read before what is remembered of them is forgotten.
const readsMax = 256

// read returns what reads a holder. s.mu is held.
func (s *session) read() *redisstore.Reader {
	if s.reads%readsMax == 0 {
		s.said = &redisstore.Reader{}
	}
	s.reads++
	return s.said
}

// live returns the claims that hold and those that wait. s.mu is held.
func (s *session) live() (holds, waits []*claim) {
	for _, c := range s.claims {
		switch {
		case c.leaving || !c.begun:
		case c.state == held:
			holds = append(holds, c)
		case c.state == waiting:
			waits = append(waits, c)
		}
	}
	return holds, waits
}
