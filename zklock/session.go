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

// session is one session of the servers', with all its claims.
type session struct {
	d       *Driver
	id      string
	owner   []byte        // as driver.Owner encodes it
	timeout time.Duration // of one call
	client  *zk.Client
	number  int64

	mu      sync.Mutex
	claims  sessions.Claims[*claim]
	own     map[string]*claim   // by their nodes
	ahead   map[string][]*claim // by the nodes that they wait for
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
	s.mu.Lock() // what is heard meanwhile waits for the client
	defer s.mu.Unlock()
	o := s.d.connection(timeout)
	o.Event, o.Connected, o.Over = s.hear, s.reconnected, s.expired
	s.client, err = zk.Dial(ctx, o)
	if err != nil {
		return err
	}
	s.number, _ = s.client.Session()
	s.contact = started
	s.timeout = min(s.d.options.Timeout, s.client.Timeout())
	return nil
}

// Valid implements driver.Session. A follower tells the leader only with its next ping whose sessions are alive; what is left of the
// timeout is for that, and for a renewal that comes late.
func (s *session) Valid() time.Duration { return s.client.Timeout() * 2 / 3 }

// over reports whether nothing can be asked any more. s.mu is held.
func (s *session) over() bool { return s.closed || s.lost }

// hear takes in a change of a node that was watched. It goes on the goroutine that reads answers, so a call that is answered later sees it.
func (s *session) hear(e zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.own[e.Path]; c != nil {
		c.own = false
		switch e.Type {
		case zk.Deleted:
			s.ends(c, gone)
		case zk.DataChanged:
			s.ends(c, broken)
		}
	}
	behind := s.ahead[e.Path]
	delete(s.ahead, e.Path) // so that unwatch leaves it alone
	for _, c := range behind {
		s.unwatch(c)
		s.stir(c)
	}
}

// again has a claim look who is ahead. s.mu is held.
func (s *session) again(c *claim) {
	c.looks = true
	c.wake.Give()
}

// stir has a claim look who is ahead, whether somebody waits for that or not: what a semaphore has room for is to be taken, or whoever comes
// behind is not told. s.mu is held.
func (s *session) stir(c *claim) {
	s.again(c)
	if c.leases != "" && c.state == waiting && !c.Leaving && !s.over() {
		go func() {
			_ = s.fly(s.d.ctx, c, func(ctx context.Context) error { return s.lookAgain(ctx, c) }) // or else a Wait does, or the next renewal
		}()
	}
}

// reconnected is called before anything is sent over another connection: no watch is known there.
func (s *session) reconnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.ahead)
	for _, c := range s.claims {
		c.own, c.ahead = false, nil
		if c.state == waiting {
			s.stir(c)
		}
	}
	s.watchHeld()
}

// expired takes in that the servers have ended the session.
func (s *session) expired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(&s.lost)
}

// finish ends the session. s.mu is held.
func (s *session) finish(how *bool) {
	if !s.over() {
		close(s.ended)
		if how == &s.lost {
			close(s.losses)
		}
	}
	*how = true
	if s.lookout != nil {
		s.lookout.Stop()
	}
	for _, c := range s.claims {
		s.ends(c, gone)
	}
}

// Lost implements driver.LossNotifier.
func (s *session) Lost() <-chan driver.Loss { return s.losses }

// find returns the claim of c, which may have been asked for before.
func (s *session) find(c driver.Claim) (*claim, error) {
	if want := s.d.allows(c); want != "" {
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
	return s.claims.Of(c.ID, func() *claim { return s.newClaim(c) }), nil
}

// allows says what the numbers of a claim should be, or nothing where they are that.
func (d *Driver) allows(c driver.Claim) string {
	switch {
	case c.Kind == driver.Permit && d.options.Layout == Kazoo:
		return "a lock: in kazoo's layout there are no permits"
	case c.Kind.Exclusive() && (c.Weight != driver.All || c.Limit != driver.All):
		return fmt.Sprintf("%d for both", driver.All)
	case c.Kind == driver.Read && (c.Weight != 1 || c.Limit != driver.All):
		return fmt.Sprintf("1 under %d", driver.All)
	case c.Kind < driver.Mutex || c.Kind > driver.Permit:
		return "a mutex, write, read or permit claim"
	case c.Weight < 1 || c.Limit < c.Weight || c.Limit > driver.All:
		return fmt.Sprintf("1 ≤ weight ≤ limit ≤ %d", driver.All)
	case c.Kind == driver.Permit && leaseCount(c)*(len(d.dir(c.Name))+leaseBytes) > maxRequest:
		return fmt.Sprintf("fewer at once or a shorter name, since a server takes requests of up to %d bytes, or a limit above %d, where they are one node", maxRequest, maxLeases)
	}
	return ""
}

// fly makes one call for c, after the one before. It goes on when ctx ends, so that its outcome is known to the next one.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("zklock: %w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	return c.Fly(ctx, &s.mu, false, s.timeout, call)
}

// watchDelay is how long a claim that never waited is held before a change of its node is told: most are released before.
const watchDelay = 500 * time.Millisecond

// watchHeld watches what is held by then. s.mu is held.
func (s *session) watchHeld() {
	if s.over() || s.lookout != nil {
		return
	}
	s.lookout = time.AfterFunc(watchDelay, func() {
		s.mu.Lock()
		s.lookout = nil // what is held from now on is for the next one
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.d.ctx, s.timeout)
		defer cancel()
		_ = s.check(ctx) // or else the next renewal does
	})
}

// check reads, behind the given calls, the nodes of claims of which no change would be told, and has it told from then on.
func (s *session) check(ctx context.Context, calls ...*zk.Call) error {
	gets := map[*claim][]*zk.Call{}
	s.mu.Lock()
	for _, c := range s.claims {
		if (c.state == waiting || c.state == held) && !c.own && !c.Leaving && len(c.nodes) > 0 && c.asked == nil {
			gets[c] = s.tell(c)
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
		s.told(ctx, c, own)
	}
	return err
}

// tell returns the calls that read the claim's nodes and have their next change told. s.mu is held.
func (s *session) tell(c *claim) (calls []*zk.Call) {
	c.own = true // before it is asked: the change may be told before the caller goes on
	for _, node := range c.nodes {
		s.own[node] = c
		calls = append(calls, zk.Get(node, true))
	}
	return calls
}

// told takes in the answers of such calls. Without one nobody knows whether a change will be told. What was read of nodes that the claim had
// when it was asked, and has no more, says nothing. s.mu is held.
func (s *session) told(ctx context.Context, c *claim, gets []*zk.Call) {
	for _, get := range gets {
		if s.own[get.Asked()] != c {
			continue
		}
		select {
		case <-get.Done():
			s.read(c, get.Asked(), get)
			c.own = c.own && get.Err == nil
		default:
			c.own = c.own && ctx.Err() == nil
		}
	}
}

// Renew implements driver.Session: a majority is asked, so that a server that has lost the leader renews nothing, nor does a leader that was voted out and has not
// heard of it yet. Every change that was made before has been told when it is answered.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	if s.over() {
		s.mu.Unlock()
		return driver.Renewal{}, driver.ErrSessionLost
	}
	var stuck []*claim
	for _, c := range s.claims {
		if c.Leaving && !c.Left && c.Landing() == nil {
			stuck = append(stuck, c) // its Release had no answer, and perhaps nobody repeats it
		}
		if c.looks {
			s.stir(c)
		}
	}
	s.mu.Unlock()
	for _, c := range stuck {
		go func() { _, _ = s.release(s.d.ctx, c) }()
	}
	rctx, cancel := context.WithTimeout(ctx, s.Valid())
	defer cancel()
	started, err := s.contacted(rctx)
	for errors.Is(err, zk.ErrUnanswered) && rctx.Err() == nil {
		started, err = s.contacted(rctx) // over another connection
	}
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("zklock: renew: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return driver.Renewal{}, driver.ErrSessionLost
	}
	// Of an earlier question the leader knows for certain; of this one it may be told only with the follower's next ping.
	r := driver.Renewal{Valid: min(s.Valid(), max(s.client.Timeout()-started.Sub(s.contact), s.client.Timeout()/3))}
	s.contact = started
	for _, c := range s.claims {
		if c.state >= broken && !c.Leaving {
			r.Lost = append(r.Lost, c.loss())
		}
	}
	return r, nil
}

// contacted asks a majority, and reads what nobody would tell. It returns when it began. A leader answers a Sync all by itself, for some time also when others
// follow another one; so this is a change, of nothing.
func (s *session) contacted(ctx context.Context) (started time.Time, err error) {
	started = time.Now()
	call := zk.Multi(zk.Check(s.d.root(), -1))
	if err = s.check(ctx, call); err == nil && call.Code != zk.NoNode && call.Code != zk.NoAuth { // which a majority says, too
		err = call.Err
	}
	return started, err
}

// certain asks after a lost answer whether the servers have ended the session, which then is why.
func (s *session) certain(ctx context.Context, err error) error {
	if errors.Is(err, zk.ErrUnanswered) {
		if end := s.client.Do(ctx, zk.Sync(s.d.root())); errors.Is(end, driver.ErrSessionLost) {
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
	s.d.sessions.Remove(s)
	ctx, cancel := context.WithTimeout(ctx, s.timeout) // where no server is reached, time ends the session
	defer cancel()
	if err := s.client.Close(ctx); err != nil {
		return fmt.Errorf("zklock: close a session: %w", err)
	}
	return nil
}
