package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/internal/zk"
)

// session is one session of the servers', with all its claims. This file has what is told of them;
// what is asked, and how they move on, is in the files of request, hold, judge, and of each call.
type session struct {
	*ensemble
	all      *sessions.Set[*session] // of the driver
	id       string
	owner    []byte        // as driver.Owner encodes it
	patience time.Duration // of one call
	client   *zk.Client
	number   int64
	refresh  func(context.Context, *claim) error // reads the line of a claim that waits and is stale

	mu     sync.Mutex
	claims sessions.Claims[*claim]
	watches
	closed  bool
	lost    bool
	ended   chan struct{} // closed with either
	losses  chan driver.Loss
	contact time.Time   // when the last renewal that was answered began
	lookout *time.Timer // to watch the nodes of claims that are held; nil while all are watched, or being asked for
}

// open opens a session of the servers'.
func (s *session) open(ctx context.Context, timeout time.Duration) (err error) {
	started := time.Now()
	s.mu.Lock() // events wait until there is a client
	defer s.mu.Unlock()
	o := s.connection(timeout)
	o.Event, o.Connected, o.Over = s.event, s.reconnected, s.expired
	s.client, err = zk.Dial(ctx, o)
	if err != nil {
		return err
	}
	s.number, _ = s.client.Session()
	s.contact = started
	s.patience = min(s.options.Timeout, s.client.Timeout())
	return nil
}

// Valid implements driver.Session. A follower tells the leader only with its next ping which
// sessions are alive; the rest of the timeout is for that, and for a renewal that comes late.
func (s *session) Valid() time.Duration { return s.client.Timeout() * 2 / 3 }

// over reports whether no more requests can be made. s.mu is held.
func (s *session) over() bool { return s.closed || s.lost }

// event handles a change of a node that was watched. It runs on the goroutine that reads answers,
// so a call that is answered later finds it handled.
func (s *session) event(e zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.own[e.Path]; c != nil {
		c.watched = false
		switch e.Type {
		case zk.Deleted:
			s.lose(c, gone)
		case zk.DataChanged:
			s.lose(c, broken)
		}
	}
	for _, c := range s.changed(e.Path) {
		s.recheck(c)
	}
}

// outdate marks what is known of the claim's line as stale, and wakes its Wait. s.mu is held.
func (s *session) outdate(c *claim) {
	c.stale = true
	c.wake.Give()
}

// recheck has the claim's line read again. That of a permit is read even if nobody calls Wait: it
// has to take what there is room for, or the claims behind it are not told. s.mu is held.
func (s *session) recheck(c *claim) {
	s.outdate(c)
	if c.leases != "" && c.state == waiting && !c.Leaving && !s.over() {
		go func() {
			// Or else a Wait does, or the next renewal.
			_ = s.fly(s.ctx, c, func(ctx context.Context) error { return s.refresh(ctx, c) })
		}()
	}
}

// reconnected is called before anything is sent over another connection: no watch is known there.
func (s *session) reconnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.ahead)
	for _, c := range s.claims {
		c.watched, c.ahead = false, nil
		if c.state == waiting {
			s.recheck(c)
		}
	}
	s.watchHeld()
}

// expired is called when the servers have ended the session.
func (s *session) expired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over() {
		close(s.losses)
	}
	s.finish(&s.lost)
}

// finish ends the session, and sets why. s.mu is held.
func (s *session) finish(why *bool) {
	if !s.over() {
		close(s.ended)
	}
	*why = true
	if s.lookout != nil {
		s.lookout.Stop()
	}
	for _, c := range s.claims {
		s.lose(c, gone)
	}
}

// Lost implements driver.LossNotifier.
func (s *session) Lost() <-chan driver.Loss { return s.losses }

// claim returns the claim of c, which may have been asked for before.
func (s *session) claim(c driver.Claim) (*claim, error) {
	if want := s.wants(c); want != "" {
		return nil, fmt.Errorf("zklock: a %s of weight %d under limit %d: want %s: %w", c.Kind, c.Weight, c.Limit, want, driver.ErrRefused)
	}
	if err := checkName(c.Name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return nil, driver.ErrSessionLost
	}
	return s.claims.Of(c.ID, func() *claim { return newClaim(s.ensemble, c) }), nil
}

// fly makes one call for c, after the one before. It goes on when ctx ends, so that the next one
// knows its outcome.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("zklock: %w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	return c.Fly(ctx, &s.mu, false, s.patience, call)
}

// watchDelay is how long a claim that never waited is held before its node is watched: most are
// released before.
const watchDelay = 500 * time.Millisecond

// watchHeld watches the nodes of claims that are held after that delay. s.mu is held.
func (s *session) watchHeld() {
	if s.over() || s.lookout != nil {
		return
	}
	s.lookout = time.AfterFunc(watchDelay, func() {
		s.mu.Lock()
		s.lookout = nil // claims that are held from now on are for the next one
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.ctx, s.patience)
		defer cancel()
		_ = s.check(ctx) // or else the next renewal does
	})
}

// check reads, behind the given calls, the nodes of claims that are not watched, and watches them.
func (s *session) check(ctx context.Context, calls ...*zk.Call) error {
	gets := map[*claim][]*zk.Call{}
	s.mu.Lock()
	for _, c := range s.claims {
		if (c.state == waiting || c.state == held) && !c.watched && !c.Leaving && len(c.nodes) > 0 && c.asked == nil {
			gets[c] = s.watchOwn(c)
			calls = append(calls, gets[c]...)
		}
	}
	s.mu.Unlock()
	if len(calls) == 0 {
		return nil
	}
	err := s.client.Do(ctx, calls...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, own := range gets {
		s.read(ctx, c, own)
	}
	return err
}

// checkOwn sends the requests of watchOwn for a claim, and others behind them. It reports whether
// the claim is lost.
func (s *session) checkOwn(ctx context.Context, c *claim, own []*zk.Call, others ...*zk.Call) (lost bool, err error) {
	err = s.client.Do(ctx, append(own[:len(own):len(own)], others...)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read(ctx, c, own)
	return c.state >= broken, err
}

// read handles the answers to requests of watchOwn. Without an answer it is not known whether a
// change will be told. The answer about a node that the claim had when it was asked, and has no
// more, is ignored. s.mu is held.
func (s *session) read(ctx context.Context, c *claim, gets []*zk.Call) {
	for _, get := range gets {
		path := get.Asked()
		if s.own[path] != c {
			continue
		}
		select {
		case <-get.Done():
			switch {
			case get.Err == nil && get.Stat.Owner == s.number:
				if path == c.nodes[0] {
					c.czxid = get.Stat.Czxid
				}
				if get.Stat.Version != 0 {
					s.lose(c, broken)
				}
			case get.Err == nil || get.Code == zk.NoNode:
				s.lose(c, gone)
			}
			c.watched = c.watched && get.Err == nil
		default:
			c.watched = c.watched && ctx.Err() == nil
		}
	}
}

// placed records the nodes of a claim, by which it is in line. s.mu is held.
func (s *session) placed(c *claim, nodes []string, czxid int64) {
	s.unwatchOwn(c)
	c.nodes, c.czxid = nodes, czxid
	if c.state == absent {
		c.state = waiting
	}
}

// lose moves the claim to gone or broken, and reports its loss. s.mu is held.
func (s *session) lose(c *claim, how state) {
	if c.state >= broken {
		return
	}
	c.state = how
	c.wake.Give()
	if !c.Leaving && !s.over() {
		select {
		case s.losses <- c.loss():
		default: // the next renewal says it
		}
	}
}

// forget drops a claim that is in line no more. s.mu is held.
func (s *session) forget(c *claim) {
	s.claims.Forget(c.ID, c)
	s.unwatchOwn(c)
	s.unwatch(c)
}

// certain returns the error of a request, after a lost answer that the servers have ended the
// session if they have.
func (s *session) certain(ctx context.Context, err error) error {
	if errors.Is(err, zk.ErrUnanswered) {
		if end := s.client.Do(ctx, zk.Sync(s.root())); errors.Is(end, driver.ErrSessionLost) {
			return end
		}
	}
	return err
}

// Close implements driver.Session: the servers remove all nodes of a session in one step.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	again := s.closed
	s.finish(&s.closed)
	s.mu.Unlock()
	if again {
		return nil // with its driver
	}
	s.all.Remove(s)
	// If no server can be reached, time ends the session.
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := s.client.Close(ctx); err != nil {
		return fmt.Errorf("zklock: close a session: %w", err)
	}
	return nil
}
