package etcdlock

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// store is what sessions ask of etcd. It implements rowline.Store.
type store struct {
	reader
	views  views
	owners owners
	longer sync.Once // logs that leases are longer than they were asked for
}

func newStore(s *server) *store {
	state := &state{leases: map[string]*lease{}, claims: map[string]*claim{}}
	return &store{
		reader: reader{s, state}, views: views{server: s, state: state, all: map[string]*view{}},
		owners: owners{server: s, known: map[clientv3.LeaseID]driver.Owner{}},
	}
}

// Open implements rowline.Store. A session whose caller gives up is opened all the same, and
// closed: else it would be there for its TTL.
func (s *store) Open(ctx context.Context, spec driver.Spec) (int64, error) {
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

// open is granted a lease, and puts the key that says who the session is.
func (s *store) open(ctx context.Context, spec driver.Spec) error {
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
		nudge: sessions.NewSignal(), slots: map[string]*claim{}, epoch: 1, renewed: started,
	}
	_, _, err = twice(ctx, s.client, func(ctx context.Context) (*clientv3.PutResponse, error) {
		return s.client.Put(ctx, l.key, l.person, clientv3.WithLease(l.id))
	})
	if err != nil {
		return err // the lease runs out
	}
	s.owners.set(l.id, spec.Owner)
	watching, over := context.WithCancel(s.ctx)
	l.over = over
	s.mu.Lock()
	s.leases[spec.ID] = l
	s.mu.Unlock()
	s.wg.Go(func() { s.watchMarks(watching, l) })
	return nil
}

// watchMarks asks for a renewal, which finds the mark, when an operator has broken a claim.
func (s *store) watchMarks(ctx context.Context, l *lease) {
	for ctx.Err() == nil {
		for r := range s.client.Watch(ctx, l.key+"/", clientv3.WithPrefix(), clientv3.WithFilterDelete()) {
			if len(r.Events) > 0 {
				l.nudge.Give()
			}
		}
		pause(ctx) // the next renewal finds what was missed
	}
}

// Finish implements rowline.Store: it revokes the lease, which deletes its keys. A request that
// arrives later finds no lease.
func (s *store) Finish(ctx context.Context, session string, _ []string) error {
	l := s.remove(session)
	if l == nil {
		return nil
	}
	l.over()
	ctx, cancel := s.limit(ctx)
	defer cancel()
	_, _, err := twice(ctx, s.client, func(ctx context.Context) (*clientv3.LeaseRevokeResponse, error) { return s.client.Revoke(ctx, l.id) })
	if errors.Is(err, driver.ErrSessionLost) {
		return nil
	}
	return err
}

// Step implements rowline.Store. The step of a claim that joins also renews the session, unless
// that was just done.
func (s *store) Step(ctx context.Context, st rowline.Step, _ time.Duration) (a rowline.Answer, err error) {
	l := s.lease(st.Session)
	if l == nil {
		return rowline.Answer{State: rowline.Over}, nil
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	s.mu.Lock()
	old, renewal := s.claims[st.Old], chan error(nil)
	simple := old != nil && old.held && old.late == 0
	if st.Renew && time.Since(l.renewed) > l.fresh {
		renewal = make(chan error, 1)
		go func() { renewal <- s.keepAlive(ctx, l) }()
	}
	s.mu.Unlock()
	switch {
	case st.New != nil:
		a, err = s.enter(ctx, l, old, *st.New)
	case old == nil: // it never was in line, or has left
	case simple:
		a, err = s.delete(ctx, old)
	default:
		a, err = s.transact(ctx, l, old, nil)
	}
	if renewal != nil {
		if failed := <-renewal; err == nil {
			err = failed
		}
	}
	if errors.Is(err, driver.ErrSessionLost) {
		return rowline.Answer{State: rowline.Over}, nil
	}
	return a, err
}

// enter puts a claim in line while old, if there is one, leaves, or finds it there.
func (s *store) enter(ctx context.Context, l *lease, old *claim, dc driver.Claim) (a rowline.Answer, err error) {
	if err := checkName(dc.Name); err != nil {
		return a, err
	}
	s.mu.Lock()
	c := s.add(l, dc, s.options.prefix(dc.Name))
	known := c.create != 0
	s.mu.Unlock()
	if known {
		answers, err := s.look(ctx, l, c)
		if err != nil {
			return a, err
		}
		a = answers[0]
	} else {
		a, err = s.join(ctx, l, old, c)
	}
	if a.Holder != nil { // who is in the way; mostly known
		s.mu.Lock()
		first := c.first.lease
		s.mu.Unlock()
		a.Holder.Owner = s.owners.of(ctx, first)
	}
	return a, err
}

// join puts a claim in line. If it does not stay there, and an attempt to put it there had no
// answer, it is released: nobody else would.
func (s *store) join(ctx context.Context, l *lease, old, c *claim) (rowline.Answer, error) {
	a, err := s.transact(ctx, l, old, c)
	if err == nil && a.State != rowline.Out {
		return a, nil
	}
	s.mu.Lock()
	absent := c.late == 0 && c.create == 0
	if absent {
		s.drop(c)
	}
	s.mu.Unlock()
	if !absent && (err == nil || certain(err)) {
		if _, failed := s.transact(ctx, l, c, nil); failed != nil {
			err = unsure(failed)
		}
	}
	return a, err
}

func (s *store) transact(ctx context.Context, l *lease, old, c *claim) (rowline.Answer, error) {
	t := transaction{reader: &s.reader, views: &s.views, l: l, old: old, c: c}
	return t.run(ctx)
}

// delete deletes the key of a claim that is held. This costs the server less than a transaction,
// which begins with a copy of what was written lately.
func (s *store) delete(ctx context.Context, old *claim) (a rowline.Answer, err error) {
	r, doubt, err := twice(ctx, s.client, func(ctx context.Context) (*clientv3.DeleteResponse, error) {
		return s.client.Delete(ctx, old.key, clientv3.WithPrevKV())
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	old.retired = doubt > 0
	if err != nil {
		old.held = false
		return a, err
	}
	s.drop(old)
	a.Twice = doubt > 0
	// Otherwise it is gone, or was marked as broken.
	a.Was = len(r.PrevKvs) > 0 && r.PrevKvs[0].ModRevision == r.PrevKvs[0].CreateRevision
	return a, nil
}

// keepAlive renews the lease by one message over a stream of its own: the client's KeepAliveOnce
// repeats a request that has no answer without a pause.
func (s *store) keepAlive(ctx context.Context, l *lease) error {
	started := time.Now()
	r, _, err := twice(ctx, s.client, func(ctx context.Context) (r *etcdserverpb.LeaseKeepAliveResponse, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := etcdserverpb.NewLeaseClient(s.client.ActiveConnection()).LeaseKeepAlive(ctx)
		if err == nil {
			err = stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(l.id)})
		}
		if err == nil || errors.Is(err, io.EOF) {
			// After EOF this returns why the stream has ended.
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

// Renew implements rowline.Store. It renews the lease and lists the lease's keys at the same time:
// a claim whose key is missing is gone, a mark tells that one is broken, and a key that this
// process does not know was left behind and is deleted. The list is from one member, which may lag
// behind another: claims whose keys it lacks are looked up. So are claims that wait, since an event
// may have been lost.
func (s *store) Renew(ctx context.Context, session string, known []rowline.Known, _ time.Duration) (int64, map[string]rowline.Answer, error) {
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
	changed, unsure, surplus := s.compare(l, known, r.Keys)
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

// compare compares what is known of a session's claims with the keys of its lease. It returns the
// claims that are broken, those that are to be looked up, and the keys that were left behind.
func (s *store) compare(l *lease, known []rowline.Known, listed [][]byte) (broken map[string]rowline.Answer, unsure []*claim, surplus []string) {
	keys, marks := map[string]bool{}, map[string]bool{}
	for _, key := range listed {
		keys[string(key)] = true
		// Also behind the namespace of another driver, which has the same keys by other names.
		if _, id, is := strings.Cut(string(key), mark(l.id)); is {
			marks[id] = true
		}
	}
	broken = map[string]rowline.Answer{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range known {
		switch c := s.claims[k.ID]; {
		case c == nil: // it is leaving
		case marks[driver.PublicID(k.ID)]:
			c.held = false
			broken[k.ID] = rowline.Answer{State: rowline.Broken}
		case !k.Held || !keys[c.key]:
			unsure = append(unsure, c)
		}
	}
	for key := range keys {
		if key != l.key && l.slots[key] == nil && s.options.isClaim(l.id, key) {
			surplus = append(surplus, key)
		}
	}
	return broken, unsure, surplus
}
