package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// session is one lease, and what this process knows of its claims.
type session struct {
	d       *Driver
	ttl     int64 // what was asked for, in seconds
	timeout time.Duration
	person  string // the value of its key
	lease   clientv3.LeaseID
	nudge   sessions.Signal
	over    context.CancelFunc // ends the watch of its marks

	mu      sync.Mutex
	claims  sessions.Claims[*claim]
	slots   map[string]*claim // by key: one that is in use, or may be by a request whose outcome is unknown
	epoch   int64             // the version of the session's key: see overtake
	granted time.Duration     // what the lease is good for
	renewed time.Time         // when the last renewal that was answered was sent
	closed  bool
	lost    bool // the lease is no more
}

func newSession(d *Driver, spec driver.Spec) *session {
	ttl := max(spec.TTL, minTTL)
	return &session{
		d: d, ttl: int64(math.Ceil(ttl.Seconds())), timeout: min(d.options.Timeout, ttl),
		person: encode(person{ID: driver.PublicID(spec.ID), Owner: spec.Owner.Encode()}),
		nudge:  sessions.NewSignal(), claims: sessions.Claims[*claim]{}, slots: map[string]*claim{},
	}
}

// open is granted the lease, and writes the session's key.
func (s *session) open(ctx context.Context, spec driver.Spec) error {
	ctx, cancel := s.d.within(ctx, s.timeout)
	defer cancel()
	started := time.Now()
	lease, err := s.d.client.Grant(ctx, s.ttl)
	if err != nil {
		return classify(err)
	}
	s.lease, s.granted, s.renewed = lease.ID, time.Duration(lease.TTL)*time.Second, started
	if _, err = s.d.client.Put(ctx, s.key(), s.person, clientv3.WithLease(s.lease)); err != nil {
		return classify(err) // the lease runs out
	}
	s.epoch = 1
	s.d.mu.Lock()
	s.d.people[s.lease] = spec.Owner
	s.d.mu.Unlock()
	var watching context.Context
	watching, s.over = context.WithCancel(s.d.ctx)
	s.d.wg.Go(func() { s.hearMarks(watching) })
	return nil
}

// key is the session's own, which begins those of its marks.
func (s *session) key() string { return s.d.options.session(s.lease) }

// saw takes in the answer to a look at the session's key.
func (s *session) saw(own *etcdserverpb.ResponseOp) error {
	kvs := own.GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return driver.ErrSessionLost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = max(s.epoch, kvs[0].Version)
	return nil
}

// mark is the key that says that c is broken.
func (s *session) mark(c *claim) string { return s.key() + "/" + driver.PublicID(c.ID) }

// hearMarks asks for a renewal, which finds the mark, when an operator has broken a claim.
func (s *session) hearMarks(ctx context.Context) {
	for ctx.Err() == nil {
		for r := range s.d.client.Watch(ctx, s.key()+"/", clientv3.WithPrefix(), clientv3.WithFilterDelete()) {
			if len(r.Events) > 0 {
				s.nudge.Give()
			}
		}
		pause(ctx, again) // the next renewal finds what was missed
	}
}

// Nudge implements driver.Nudger.
func (s *session) Nudge() <-chan struct{} { return s.nudge }

// fresh is how old the last renewal may be for an Acquire not to renew along.
func (s *session) fresh() time.Duration { return s.granted / 10 }

// valid is what a lease of that time can be trusted for: less what a renewal may be old, and the drift between the store's clock and ours.
// The store never ends a lease early: it counts from when it has got the request.
func (s *session) valid() time.Duration { return s.granted - s.fresh() - s.granted/100 }

// Valid implements driver.Session.
func (s *session) Valid() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.valid()
}

// ends takes in that the session is no more, with everything that it had. s.mu is held.
func (s *session) ends() error {
	s.lost = true
	for _, c := range s.claims {
		c.end(gone)
	}
	return driver.ErrSessionLost
}

// failed is err, and takes in what it says of the session.
func (s *session) failed(err error) error {
	err = classify(err)
	if errors.Is(err, driver.ErrSessionLost) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.ends()
	}
	return err
}

// keepAlive renews the lease, by one message over a stream of its own: the client's KeepAliveOnce asks again without a pause where nobody
// answers.
func (s *session) keepAlive(ctx context.Context) error {
	started := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var r *etcdserverpb.LeaseKeepAliveResponse
	stream, err := etcdserverpb.NewLeaseClient(s.d.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err == nil {
		err = stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(s.lease)})
	}
	if err == nil || errors.Is(err, io.EOF) { // then why the stream has ended is what is received
		r, err = stream.Recv()
	}
	if err != nil {
		return classify(clientv3.ContextError(ctx, err))
	}
	if r.TTL <= 0 {
		return driver.ErrSessionLost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if started.After(s.renewed) {
		s.renewed, s.granted = started, time.Duration(r.TTL)*time.Second
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
	return &claim{Claim: c, s: s, value: encode(valueOf(c)), change: sessions.NewSignal()}
}

// place gives c a key, which no other claim of the session has. s.mu is held.
func (s *session) place(c *claim) {
	for n := 0; c.key == ""; n++ {
		if key := s.d.options.line(c.Name) + slot(s.lease, n); s.slots[key] == nil {
			c.key, s.slots[key] = key, c
		}
	}
}

// forget drops a claim that does not stand in the store any more, or never did. s.mu is held.
func (s *session) forget(c *claim) {
	s.claims.Forget(c.ID, c)
	switch {
	case s.slots[c.key] != c:
	case c.retire:
		s.slots[c.key] = &claim{}
	default:
		delete(s.slots, c.key)
	}
}

// fly makes one call for c, after the one before. It is given up when ctx ends, and may be carried out all the same, at any time: what puts a
// key is overtaken then, and a key that was to be deleted is not used again.
func (s *session) fly(ctx context.Context, c *claim, call func(ctx context.Context) error) error {
	return c.Fly(ctx, &s.mu, true, s.timeout, s.limited(ctx, call))
}

// limited is the call with a context that ends: gRPC waits for that, whatever deadline it has.
func (s *session) limited(ctx context.Context, call func(ctx context.Context) error) func(context.Context) error {
	return func(context.Context) error {
		ctx, cancel := s.d.within(ctx, s.timeout)
		defer cancel()
		return call(ctx)
	}
}

// Close implements driver.Session: it revokes the lease, and every key goes with it.
func (s *session) Close(ctx context.Context) error {
	if s.d.sessions.Closed() {
		return nil // with its driver
	}
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	all := s.claims.AllLeaving()
	s.mu.Unlock()
	if !first {
		return nil
	}
	s.over()
	ctx, cancel := s.d.within(ctx, s.d.options.Timeout)
	defer cancel()
	_, err := s.d.client.Revoke(ctx, s.lease) // a request under way that comes later finds no lease
	s.mu.Lock()
	for _, c := range all {
		c.Left = c.Left || err == nil
		c.end(gone)
		s.forget(c)
	}
	s.mu.Unlock()
	s.d.sessions.Remove(s)
	if err = classify(err); err != nil && !errors.Is(err, driver.ErrSessionLost) {
		return fmt.Errorf("etcdlock: close a session: %w", err)
	}
	return nil
}

// again is how long after a failure the same is tried once more.
const again = 100 * time.Millisecond

// pause is back after that time, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
