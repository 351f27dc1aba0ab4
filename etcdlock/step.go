package etcdlock

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// Step implements rowline.Store. Beside the step of a claim that joins the session is renewed, unless that was just done.
func (s store) Step(ctx context.Context, st rowline.Step, _ time.Duration) (a rowline.Answer, err error) {
	l := s.lease(st.Session)
	if l == nil {
		return rowline.Answer{State: rowline.Over}, nil
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	s.mu.Lock()
	old, renewal := s.places[st.Old], chan error(nil)
	if st.Renew && time.Since(l.renewed) > l.fresh {
		renewal = make(chan error, 1)
		go func() { renewal <- s.keepAlive(ctx, l) }()
	}
	switch {
	case st.New != nil:
		a, err = s.enter(ctx, l, old, *st.New)
	case old == nil: // it never stood there, or has left
	case old.held && old.late == 0:
		a, err = s.remove(ctx, old)
	default:
		a, err = s.step(ctx, l, old, nil)
	}
	s.mu.Unlock()
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

// enter has a claim join its line while old leaves, if there is one, or finds it there. The mutex is held, here and in what follows, but not
// while something is asked.
func (s store) enter(ctx context.Context, l *lease, old *place, c driver.Claim) (a rowline.Answer, err error) {
	if err := checkName(c.Name); err != nil {
		return a, err
	}
	p := s.places[c.ID]
	if p == nil {
		p = &place{Claim: c, lease: l, value: encode(valueOf(c))}
		for n := 0; p.key == "" || l.slots[p.key] != nil; n++ {
			p.key = s.options.line(c.Name) + slot(l.id, n)
		}
		s.places[c.ID], l.slots[p.key] = p, p
	}
	if p.create != 0 {
		answers, err := s.look(ctx, l, p)
		if err != nil {
			return a, err
		}
		a = answers[0]
	} else if a, err = s.step(ctx, l, old, p); err != nil || a.State == rowline.Out {
		if p.late == 0 && p.create == 0 { // nothing of it stands there
			s.drop(p)
		} else if err == nil || certain(err) { // nobody will release it, and an attempt without an answer may still put it there
			if _, failed := s.step(ctx, l, p, nil); failed != nil {
				err = unsure(failed)
			}
		}
	}
	if a.Holder != nil { // who is in the way; mostly known
		first := p.first.lease
		s.mu.Unlock()
		a.Holder.Owner = s.owner(ctx, first)
		s.mu.Lock()
	}
	return a, err
}

// remove takes out a claim that is held by what costs the server least: a transaction begins with a copy of what was written lately.
func (s store) remove(ctx context.Context, old *place) (a rowline.Answer, err error) {
	s.mu.Unlock()
	r, doubt, err := twice(ctx, s.client, func(ctx context.Context) (*clientv3.DeleteResponse, error) {
		return s.client.Delete(ctx, old.key, clientv3.WithPrevKV())
	})
	s.mu.Lock()
	old.retired = doubt > 0
	if err != nil {
		old.held = false
		return a, err
	}
	s.drop(old)
	a.Twice = doubt > 0
	a.Was = len(r.PrevKvs) > 0 && r.PrevKvs[0].ModRevision == r.PrevKvs[0].CreateRevision // else it is gone, or was marked as broken
	return a, nil
}

// drop forgets a place.
func (d *Driver) drop(p *place) {
	delete(d.places, p.ID)
	delete(p.lease.slots, p.key)
	if p.retired {
		p.lease.slots[p.key] = p
	}
	if p.deaf != nil {
		p.deaf()
	}
}

// step is one transaction in which old leaves its line, and p is put at the end of it; either may be nil.
//
// A request that was given up may come late all the same. One that puts a key names the version of the session's key; the release of a claim
// whose key may still be put writes that, so that whatever was sent before finds another version then and changes nothing. One that only
// deletes names the revision at which the key was created, or the key is not used again.
func (s store) step(ctx context.Context, l *lease, old, p *place) (a rowline.Answer, err error) {
	for seen, again, passed := int64(0), false, false; ; {
		epoch, late, held := l.epoch, old != nil && old.late > 0, old != nil && old.held
		first, waits := entry{}, false
		if p == nil && !late && !held && !passed {
			first, waits = s.inWay(old)
		}
		var when []clientv3.Cmp
		var then, otherwise []clientv3.Op
		if p != nil || late {
			when = append(when, clientv3.Compare(clientv3.Version(l.key), "=", epoch))
		}
		if old != nil {
			switch {
			case held: // and the key is as it was put, else the claim was marked as broken, or is gone
				when = append(when, clientv3.Compare(clientv3.ModRevision(old.key), "=", old.create))
			case p == nil && !late:
				when = append(when, clientv3.Compare(clientv3.CreateRevision(old.key), "=", old.create))
			}
			switch {
			case held:
			case waits: // and that one stands there still, so that old does not hold: nothing has to be read
				when = append(when, clientv3.Compare(clientv3.CreateRevision(first.key), "=", first.create))
				then = append(then, clientv3.OpDelete(old.mark()))
			default:
				then = append(then, clientv3.OpGet(s.options.line(old.Name), clientv3.WithPrefix()), clientv3.OpDelete(old.mark()))
			}
			then = append(then, clientv3.OpDelete(old.key))
			if late {
				then = append(then, clientv3.OpPut(l.key, l.person, clientv3.WithLease(l.id)))
			}
		}
		if p != nil {
			when = append(when, clientv3.Compare(clientv3.CreateRevision(p.key), "=", 0))
			if old == nil && !p.Queue { // the line is as it was seen: at first, that there is none
				when = append(when, clientv3.Compare(clientv3.ModRevision(s.options.line(p.Name)).WithPrefix(), "<", seen+1))
			}
			then = append(then, clientv3.OpPut(p.key, p.value, clientv3.WithLease(l.id)), s.lineOf(p))
			otherwise = []clientv3.Op{clientv3.OpGet(p.key), s.lineOf(p)}
		}
		r, doubt, err := s.txn(ctx, when, then, append(otherwise, clientv3.OpGet(l.key)))
		if p != nil {
			p.late += doubt
			if old != nil {
				old.late += doubt
			}
		}
		again = again || doubt > 0
		if err != nil {
			return a, err
		}
		last := r.Responses[len(r.Responses)-1].GetResponseRange()
		if r.Succeeded {
			if late {
				l.epoch = max(l.epoch, epoch+1) // it may be known already, by a request that came after this one and was answered before it
			}
			was := old != nil && s.left(old, r.Responses, held, waits)
			if p != nil {
				a, err = s.joined(ctx, p, r.Header.Revision, last)
			}
			a.Was, a.Twice = was, again
			return a, err
		}
		if len(last.Kvs) == 0 {
			return a, driver.ErrSessionLost
		}
		l.epoch = last.Kvs[0].Version // and never what was only counted: if that were more, no request would find it
		switch {
		case waits: // it waits no longer, or is gone: what stands there tells
			passed = true
			continue
		case p == nil && !late && !held:
			s.drop(old)
			a.Twice = again
			return a, nil
		}
		if held {
			old.held = false
		}
		if p == nil {
			continue
		}
		n, err := s.lineFor(ctx, p, r.Responses[0].GetResponseRange().Kvs, r.Responses[1].GetResponseRange())
		if err != nil {
			return a, err
		}
		switch i := n.find(p.key); {
		case i >= 0 && n.entries[i].ID == driver.PublicID(p.ID) && old == nil:
			p.late = max(p.late-1, 0) // that was it
			if a, err = p.stands(&n, n.entries[i].create); err != nil {
				err = s.withdraw(ctx, p, n.entries[i].create, err)
			}
			return a, err
		case i >= 0: // nobody here has put it
			if err := s.erase(ctx, clientv3.Compare(clientv3.CreateRevision(p.key), "=", n.entries[i].create)); err != nil {
				return a, err
			}
		case old == nil && !p.Queue:
			if err := n.admits(p.Claim, ""); err != nil || !n.fits(p.Claim) {
				return n.denies(p), err
			}
			seen = r.Header.Revision
		}
	}
}

// inWay returns a claim that keeps p from being held for as long as it stands there: the first one, where that is known and enough.
// Those who give up together would each read the whole line otherwise, which all of them stand in.
func (s store) inWay(p *place) (first entry, known bool) {
	if first = p.first; s.views[p.Name] != nil && len(s.views[p.Name].line.entries) > 0 {
		first = s.views[p.Name].line.entries[0] // of now
	}
	return first, first.create != 0 && first.create < p.create && int64(first.Weight)+int64(p.Weight) > int64(p.Limit)
}

// left takes in that old has left, and reports whether it was held until then.
func (s store) left(old *place, answers []*etcdserverpb.ResponseOp, held, waits bool) bool {
	s.drop(old)
	if held || waits {
		return held
	}
	n, err := s.readLine(old.Name, answers[0].GetResponseRange().Kvs)
	i := n.find(old.key)
	return err == nil && i >= 0 && n.holds(i) && !n.entries[i].Broken
}

// joined takes in that p was put in line. One that cannot stand there, or may not wait, is taken out again.
func (s store) joined(ctx context.Context, p *place, create int64, all *etcdserverpb.RangeResponse) (a rowline.Answer, err error) {
	n := line{name: p.Name, entries: []entry{{value: value{Kind: p.Kind, Weight: p.Weight, Limit: p.Limit}, key: p.key, create: create}}}
	if all.Count > 1 { // else the lock was free, and nothing has to be read
		own := &mvccpb.KeyValue{Key: []byte(p.key), Value: []byte(p.value), Lease: int64(p.lease.id), CreateRevision: create, ModRevision: create}
		if n, err = s.lineFor(ctx, p, []*mvccpb.KeyValue{own}, all); err == nil {
			err = n.admits(p.Claim, p.key)
		}
	}
	if err == nil && (p.Queue || n.holds(n.find(p.key))) {
		if a, err = p.stands(&n, create); err == nil {
			return a, nil
		}
	} else {
		a = n.denies(p)
	}
	return a, s.withdraw(ctx, p, create, err)
}

// withdraw takes out what was put in line and is not to stand there.
func (s store) withdraw(ctx context.Context, p *place, create int64, why error) error {
	if failed := s.erase(ctx, clientv3.Compare(clientv3.CreateRevision(p.key), "=", create)); failed != nil {
		p.create = create // it stands there, and is to be released
		return unsure(failed)
	}
	return why
}

// erase deletes the key that is compared, if that is as it should be.
func (s store) erase(ctx context.Context, when clientv3.Cmp) error {
	_, _, err := s.txn(ctx, []clientv3.Cmp{when}, []clientv3.Op{clientv3.OpDelete(string(when.Key))}, nil)
	return err
}

// txn is a transaction.
func (s store) txn(ctx context.Context, when []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, int, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return twice(ctx, s.client, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(when...).Then(then...).Else(otherwise...).Commit()
	})
}

// look finds claims that are in line as far as this process was told. It can not put them there.
func (s store) look(ctx context.Context, l *lease, some ...*place) ([]rowline.Answer, error) {
	ops := []clientv3.Op{clientv3.OpGet(l.key)}
	for _, p := range some {
		ops = append(ops, clientv3.OpGet(p.key), s.lineOf(p), clientv3.OpGet(p.mark()))
	}
	r, _, err := s.txn(ctx, nil, ops, nil)
	if err != nil {
		return nil, err
	}
	if len(r.Responses[0].GetResponseRange().Kvs) == 0 {
		return nil, driver.ErrSessionLost
	}
	answers := make([]rowline.Answer, len(some))
	for i, p := range some {
		own, all, marks := r.Responses[3*i+1].GetResponseRange(), r.Responses[3*i+2].GetResponseRange(), r.Responses[3*i+3].GetResponseRange()
		n, err := s.lineFor(ctx, p, own.Kvs, all)
		if err != nil {
			return nil, err
		}
		if answers[i], err = p.stands(&n, p.create); err != nil {
			return nil, err
		}
		if answers[i].State == rowline.Gone && len(marks.Kvs) > 0 {
			answers[i].State = rowline.Broken
		}
	}
	return answers, nil
}

// lineOf reads the line of a claim as far as its state depends on it: one that excludes all others holds when it is the first.
func (s store) lineOf(p *place) clientv3.Op {
	opts := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)}
	if p.Kind.Exclusive() {
		opts = append(opts, clientv3.WithLimit(1))
	}
	return clientv3.OpGet(s.options.line(p.Name), opts...)
}

// lineFor takes the answer to lineOf, and the claim's own key.
func (s store) lineFor(ctx context.Context, p *place, own []*mvccpb.KeyValue, all *etcdserverpb.RangeResponse) (line, error) {
	n, err := s.readLine(p.Name, all.Kvs)
	switch {
	case err != nil:
		return n, err
	case all.More && len(n.entries) == 0: // the first key is of a name below this one
		s.mu.Unlock()
		defer s.mu.Lock()
		return s.read(ctx, p.Name)
	case all.More && len(own) > 0 && n.find(p.key) < 0:
		if n, err = s.readLine(p.Name, append(all.Kvs, own[0])); err != nil {
			return n, err
		}
	}
	p.deep = p.Kind.Exclusive() && all.Count > front
	return n, nil
}

// front is how many processes hear of each that leaves.
const front = 32

// stands is how the claim stands in its line, where its key was created then.
func (p *place) stands(n *line, create int64) (a rowline.Answer, err error) {
	i := n.find(p.key)
	if i < 0 || n.entries[i].create != create {
		return rowline.Answer{State: rowline.Gone}, nil
	}
	token, err := fence(p.Kind, create)
	if err != nil { // also of one that waits: it could never be let in
		return a, err
	}
	switch {
	case n.entries[i].Broken:
		a.State = rowline.Broken
	case n.holds(i):
		a.State, a.Fence = rowline.Held, token
	default:
		a = n.denies(p)
		a.State = rowline.Waiting
	}
	p.create, p.held = create, a.State == rowline.Held
	return a, nil
}

// denies is the answer to a claim that does not hold.
func (l *line) denies(p *place) (a rowline.Answer) {
	a.Left = -1
	if len(l.entries) > 0 {
		h := l.holder(0)
		a.Holder, p.first = &h, l.entries[0]
	}
	return a
}
