package pglock

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is one row of the database, and what this process knows of its claims.
type session struct {
	d       *Driver
	id      string
	ttl     time.Duration
	timeout time.Duration

	mu     sync.Mutex
	claims sessions.Claims[*claim]
	closed bool
	lost   bool      // the database knows it no more
	clock  int64     // the database's, in µs, when it answered a request
	at     time.Time // that was sent then
}

func newSession(d *Driver, spec driver.Spec) *session {
	ttl := spec.TTL.Truncate(time.Microsecond)
	return &session{d: d, id: spec.ID, ttl: ttl, timeout: min(d.options.Timeout, ttl), claims: sessions.Claims[*claim]{}}
}

// Valid implements driver.Session: the TTL less a tenth, by which the last renewal may be old when an Acquire relies on it, and the
// drift between the database's clock and ours.
func (s *session) Valid() time.Duration {
	return s.ttl - s.ttl/10 - s.ttl/100 - 2*time.Millisecond
}

// open makes the row. On the way it sweeps up after sessions that ended long ago and stood in no line that anybody looked at.
func (s *session) open(ctx context.Context, owner []byte) error {
	started := time.Now()
	in := s.d.in
	a, err := s.d.call(ctx, fmt.Sprintf("with swept as (delete from %[1]ssession where id in (select s.id from %[1]ssession s where s.until < %[1]sus() - 3600000000 limit 100 for update skip locked)) "+
		"insert into %[1]ssession values ('%[2]s', '%[3]s', %[4]d, %[1]sus() + %[4]d, '{}', decode('%[5]x', 'hex')) "+
		"on conflict (id) do update set until = excluded.until returning until - ttl", in, s.id, s.d.channel, s.ttl.Microseconds(), owner))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(started, number(a.rows[0][0]))
	return nil
}

// set takes in the database's clock, as it was answered to a request that was sent at started. s.mu is held.
func (s *session) set(started time.Time, clock int64) {
	if started.After(s.at) {
		s.at, s.clock = started, clock
	}
}

// deadline is when a request that is sent now is void, by the database's clock: before its caller has given up waiting for the answer.
func (s *session) deadline() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock + (time.Since(s.at) + s.timeout*3/4).Microseconds()
}

// check refuses a claim that cannot be kept.
func check(c driver.Claim) error {
	switch {
	case !validID(c.ID):
		return fmt.Errorf("pglock: claim ID of %d bytes: want one as driver.NewID makes them: %w", len(c.ID), driver.ErrRefused)
	case c.Name == "" || len(c.Name) > maxName:
		return fmt.Errorf("pglock: name of %d bytes: want 1 to %d: %w", len(c.Name), maxName, driver.ErrRefused)
	case c.Weight < 1 || c.Limit < c.Weight || c.Limit > driver.All:
		return fmt.Errorf("pglock: a claim of weight %d under limit %d: want 1 ≤ weight ≤ limit ≤ %d: %w", c.Weight, c.Limit, driver.All, driver.ErrRefused)
	}
	return nil
}

// claim returns what is known of c, from now on at least its ID.
func (s *session) claim(c driver.Claim) (*claim, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.lost {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return s.newClaim(c) }), nil
}

func (s *session) newClaim(c driver.Claim) *claim {
	return &claim{Claim: c, s: s, change: sessions.NewSignal()}
}

// maxName is what the index of the table can hold, and some.
const maxName = 2048

// forget drops a claim that does not stand in the store any more, or never did. s.mu is held.
func (s *session) forget(c *claim) {
	if s.claims.Forget(c.ID, c) {
		s.d.unhear(c)
	}
}

// fly makes one call for c, after the one before.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	return c.Fly(ctx, &s.mu, true, s.timeout, call)
}

// ends takes in that the session is no more, with everything that it had. s.mu is held.
func (s *session) ends() error {
	s.lost = true
	for _, c := range s.claims {
		c.end(gone)
	}
	return driver.ErrSessionLost
}

// Renew implements driver.Session: one statement for the session and for the state of all its claims.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.closed || s.lost {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	var about, stuck []*claim
	var lost []string
	for _, c := range s.claims {
		switch {
		case c.Leaving && !c.Left && c.Landing() == nil:
			stuck = append(stuck, c) // its Release had no answer, and perhaps nobody repeats it
		case c.Leaving || c.state == out:
		case c.state >= broken:
			lost = append(lost, c.ID)
		default:
			about = append(about, c)
		}
	}
	var names, ids, holds []string
	for _, c := range about {
		names, ids, holds = append(names, hex.EncodeToString([]byte(c.Name))), append(ids, c.ID), append(holds, strconv.FormatBool(c.state == held))
	}
	s.mu.Unlock()
	for _, c := range stuck {
		go func() { _, _ = s.release(s.d.ctx, c) }()
	}

	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)), time.Millisecond)
	}
	started := time.Now()
	rctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := s.d.call(rctx, fmt.Sprintf("select * from %srenew('%s', '{%s}', '{%s}', '{%s}', %d)",
		s.d.in, s.id, strings.Join(names, ","), strings.Join(ids, ","), strings.Join(holds, ","), (timeout/2).Milliseconds()))
	if err == nil && len(a.rows) == 0 {
		err = errors.New("the server answered nothing")
	}
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("pglock: renew: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state(number(a.rows[0][1])) == over {
		return driver.Renewal{}, s.ends()
	}
	s.set(started, number(a.rows[0][2]))
	for _, f := range a.rows[1:] {
		c := about[number(f[0])-1]
		if c.Leaving {
			continue
		}
		switch st := state(number(f[1])); st {
		case waiting:
			c.schedule(number(f[3]), string(f[4]) == "t", s.d.direct)
		case held:
			c.admit(number(f[2]))
			s.d.unhear(c)
		default:
			c.end(st)
			lost = append(lost, c.ID)
		}
	}
	return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
}

// Close implements driver.Session: one statement leaves every line and ends the session.
func (s *session) Close(ctx context.Context) error {
	if s.d.sessions.Closed() {
		return nil // with its driver
	}
	s.mu.Lock()
	s.closed = true
	all := s.claims.AllLeaving()
	s.mu.Unlock()
	names := make([]string, 0, len(all))
	for _, c := range all {
		c.Rest(ctx, &s.mu) // a request under way may put it into the line
		names = append(names, hex.EncodeToString([]byte(c.Name)))
	}
	cctx, cancel := context.WithTimeout(ctx, s.d.options.Timeout)
	defer cancel()
	_, err := s.d.call(cctx, fmt.Sprintf("select %sfinish('%s', '{%s}')", s.d.in, s.id, strings.Join(names, ",")))
	s.mu.Lock()
	for _, c := range all {
		c.Left = c.Left || err == nil
		c.end(gone)
		s.forget(c)
	}
	s.mu.Unlock()
	s.d.sessions.Remove(s)
	if err != nil {
		return fmt.Errorf("pglock: close a session: %w", err)
	}
	return nil
}
