package etcdlock

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// store is what sessions say to etcd. It implements rowline.Store.
type store struct{ *Driver }

// lease is what this process knows of a session. The driver's mutex guards what changes.
type lease struct {
	id     clientv3.LeaseID
	key    string // the session's own, which begins those of its marks
	person string // its value
	fresh  time.Duration
	nudge  sessions.Signal
	over   context.CancelFunc // ends the watch of its marks

	slots   map[string]*place // by key: one that is in use, or may be by a request whose outcome is unknown
	epoch   int64             // the version of the session's key: see step
	renewed time.Time         // when the last renewal that was answered was sent
}

// place is a claim's in the line.
type place struct {
	driver.Claim
	lease   *lease
	key     string
	value   string // of the key, as it was put
	create  int64  // the key's create revision; 0 as long as it is not known to stand there
	held    bool   // and not broken, as far as is known
	late    int    // so many requests that put the key had no answer, and may still arrive
	retired bool   // a request that deletes the key had no answer, and may still arrive
	first   entry  // who was in its way

	deep bool               // there were too many before it to hear of all of them
	ear  chan struct{}      // then it hears of the one before it
	deaf context.CancelFunc // and of nobody
}

// mark is the key by which drivers of this namespace say that the claim is broken.
func (p *place) mark() string { return p.lease.key + "/" + driver.PublicID(p.ID) }

// lease returns a session's, or nil.
func (d *Driver) lease(session string) *lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leases[session]
}

// Open implements rowline.Store. What its caller has given up is opened all the same, and closed: else it would be there for its TTL.
func (s store) Open(ctx context.Context, spec driver.Spec) (int64, error) {
	opened := make(chan error, 1)
	s.wg.Go(func() { opened <- s.open(context.WithoutCancel(ctx), spec) })
	select {
	case err := <-opened:
		return 0, err
	case <-ctx.Done():
		s.wg.Go(func() {
			if <-opened == nil {
				_ = s.Finish(s.ctx, spec.ID, nil)
			}
		})
		return 0, ctx.Err()
	}
}

// open is granted a lease and says under it who the session is.
func (s store) open(ctx context.Context, spec driver.Spec) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	started := time.Now()
	r, _, err := twice(ctx, s.client, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return s.client.Grant(ctx, int64(spec.TTL/time.Second)) // a second one runs out
	})
	if err != nil {
		return err
	}
	if given := time.Duration(r.TTL) * time.Second; given > spec.TTL {
		s.longer.Do(func() {
			go s.options.Logger.Warn("etcdlock: the store gives longer leases, by its --election-timeout: so long locks outlive a process that died", "ttl", spec.TTL, "given", given)
		})
	}
	l := &lease{
		id: r.ID, key: s.options.session(r.ID), person: encode(person{driver.PublicID(spec.ID), spec.Owner.Encode()}), fresh: spec.TTL / 10,
		nudge: sessions.NewSignal(), slots: map[string]*place{}, epoch: 1, renewed: started,
	}
	_, _, err = twice(ctx, s.client, func(ctx context.Context) (*clientv3.PutResponse, error) {
		return s.client.Put(ctx, l.key, l.person, clientv3.WithLease(l.id))
	})
	if err != nil {
		return err // the lease runs out
	}
	watching, over := context.WithCancel(s.ctx)
	l.over = over
	s.mu.Lock()
	s.leases[spec.ID], s.people[l.id] = l, spec.Owner
	s.mu.Unlock()
	s.wg.Go(func() { s.hearMarks(watching, l) })
	return nil
}

// hearMarks asks for a renewal, which finds the mark, when an operator has broken a claim.
func (s store) hearMarks(ctx context.Context, l *lease) {
	for ctx.Err() == nil {
		for r := range s.client.Watch(ctx, l.key+"/", clientv3.WithPrefix(), clientv3.WithFilterDelete()) {
			if len(r.Events) > 0 {
				l.nudge.Give()
			}
		}
		pause(ctx) // the next renewal finds what was missed
	}
}

// keepAlive renews the lease, by one message over a stream of its own: the client's KeepAliveOnce asks again without a pause where nobody
// answers.
func (s store) keepAlive(ctx context.Context, l *lease) error {
	started := time.Now()
	r, _, err := twice(ctx, s.client, func(ctx context.Context) (r *etcdserverpb.LeaseKeepAliveResponse, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := etcdserverpb.NewLeaseClient(s.client.ActiveConnection()).LeaseKeepAlive(ctx)
		if err == nil {
			err = stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(l.id)})
		}
		if err == nil || errors.Is(err, io.EOF) { // then why the stream has ended is what is received
			r, err = stream.Recv()
		}
		return r, clientv3.ContextError(ctx, err)
	})
	if err != nil {
		return err
	}
	if r.TTL <= 0 {
		return driver.ErrSessionLost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if started.After(l.renewed) {
		l.renewed = started
	}
	return nil
}

// Renew implements rowline.Store. It renews the lease and, beside that, has the store list the lease's keys: a claim whose key is missing is
// gone, a mark says that one is broken, and a key that nobody here knows was left behind. The list is what one member has carried out so
// far, which may be less than another one has: what it lacks is looked for. So is what waits, since an event may have been lost.
func (s store) Renew(ctx context.Context, session string, known []rowline.Known, _ time.Duration) (int64, map[string]rowline.Answer, error) {
	l := s.lease(session)
	if l == nil {
		return 0, nil, driver.ErrSessionLost
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	renewed := make(chan error, 1)
	go func() { renewed <- s.keepAlive(ctx, l) }()
	r, _, err := twice(ctx, s.client, func(ctx context.Context) (*clientv3.LeaseTimeToLiveResponse, error) {
		return s.client.TimeToLive(ctx, l.id, clientv3.WithAttachedKeys())
	})
	if err == nil && r.TTL <= 0 {
		err = driver.ErrSessionLost
	}
	if failed := <-renewed; err == nil || errors.Is(failed, driver.ErrSessionLost) {
		err = failed
	}
	if err != nil {
		return 0, nil, err
	}
	keys, broken := map[string]bool{}, map[string]bool{}
	for _, key := range r.Keys {
		keys[string(key)] = true
		if _, id, is := strings.Cut(string(key), mark(l.id)); is { // also behind the namespace of another driver, which has the same keys by other names
			broken[id] = true
		}
	}
	changed := map[string]rowline.Answer{}
	var unsure []*place
	var surplus []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range known {
		switch p := s.places[k.ID]; {
		case p == nil: // it is leaving
		case broken[driver.PublicID(k.ID)]:
			p.held = false
			changed[k.ID] = rowline.Answer{State: rowline.Broken}
		case !k.Held || !keys[p.key]:
			unsure = append(unsure, p)
		}
	}
	for key := range keys {
		if key != l.key && l.slots[key] == nil && s.isOwn(l, key) {
			surplus = append(surplus, key)
		}
	}
	for _, key := range surplus { // unless it was put since they were listed
		err = errors.Join(err, s.erase(ctx, clientv3.Compare(clientv3.ModRevision(key), "<", r.Revision+1)))
	}
	for some := range slices.Chunk(unsure, maxOps/3) {
		answers, failed := s.look(ctx, l, some...)
		if err = errors.Join(err, failed); err != nil {
			break
		}
		for i, a := range answers {
			if a.State != rowline.Waiting {
				changed[some[i].ID] = a
			}
		}
	}
	return 0, changed, err
}

// maxOps are of one transaction; etcd's usual limit is 128.
const maxOps = 100

// isOwn reports whether a key is of a claim of this session.
func (s store) isOwn(l *lease, key string) bool {
	_, slot := cutLast(key)
	return strings.HasPrefix(key, s.options.Namespace) && isSlot(slot, int64(l.id))
}

// Finish implements rowline.Store: it revokes the lease, and every key goes with it. A request under way that comes later finds no lease.
func (s store) Finish(ctx context.Context, session string, _ []string) error {
	s.mu.Lock()
	l := s.leases[session]
	if l == nil {
		s.mu.Unlock()
		return nil
	}
	delete(s.leases, session)
	for _, p := range l.slots {
		s.drop(p)
	}
	s.mu.Unlock()
	l.over()
	ctx, cancel := s.limit(ctx)
	defer cancel()
	_, _, err := twice(ctx, s.client, func(ctx context.Context) (*clientv3.LeaseRevokeResponse, error) { return s.client.Revoke(ctx, l.id) })
	if errors.Is(err, driver.ErrSessionLost) {
		return nil
	}
	return err
}

// pause is back a moment later, or when ctx ends: so long after a failure the same is tried once more.
func pause(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}
