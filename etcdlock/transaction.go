package etcdlock

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// transaction takes old out of its line and puts c at the end of its own; either may be nil. It is
// made again as long as what it relies on has changed.
//
// A request that was given up may still arrive late. One that puts a key names the version of the
// session's key, the epoch. The release of a claim whose key may still be put writes the session's
// key, so every request that was sent before finds another version and changes nothing. One that
// only deletes names the revision at which the key was created, or the key is not used again.
type transaction struct {
	*reader
	views *views

	l      *lease
	old, c *claim
	seen   int64 // the line was read at this revision and c would hold: for one that does not queue
	passed bool  // the claim in old's way was named, and is not there
	twice  bool  // an attempt had no answer

	// Of an attempt:
	epoch int64
	late  bool // the key of old may still be put
	held  bool // old is held, as far as is known
	waits bool // old waits, as long as a claim is there that is named
}

// run makes attempts until one tells what came of the transaction.
func (t *transaction) run(ctx context.Context) (rowline.Answer, error) {
	for {
		when, then, otherwise := t.plan()
		r, doubt, err := t.txn(ctx, when, then, otherwise)
		t.doubt(doubt)
		if err != nil {
			return rowline.Answer{}, err
		}
		if r.Succeeded {
			return t.succeeded(ctx, r)
		}
		if a, done, err := t.failed(ctx, r); done || err != nil {
			return a, err
		}
	}
}

// plan returns the next attempt.
func (t *transaction) plan() (when []clientv3.Cmp, then, otherwise []clientv3.Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, old, c := t.l, t.old, t.c
	t.epoch, t.late, t.held, t.waits = l.epoch, old != nil && old.late > 0, old != nil && old.held, false
	var first entry
	if c == nil && !t.late && !t.held && !t.passed {
		first, t.waits = t.inWay()
	}
	if c != nil || t.late {
		when = append(when, clientv3.Compare(clientv3.Version(l.key), "=", t.epoch))
	}
	if old != nil {
		switch {
		case t.held:
			// The key is as it was put, else the claim was marked as broken, or is gone.
			when = append(when, clientv3.Compare(clientv3.ModRevision(old.key), "=", old.create))
		case c == nil && !t.late:
			when = append(when, clientv3.Compare(clientv3.CreateRevision(old.key), "=", old.create))
		}
		switch {
		case t.held:
		case t.waits:
			// The first of the line is still there, so old is not held, and nothing has to be read.
			when = append(when, clientv3.Compare(clientv3.CreateRevision(first.key), "=", first.create))
			then = append(then, clientv3.OpDelete(old.mark()))
		default:
			then = append(then, clientv3.OpGet(t.options.prefix(old.Name), clientv3.WithPrefix()), clientv3.OpDelete(old.mark()))
		}
		then = append(then, clientv3.OpDelete(old.key))
		if t.late {
			then = append(then, clientv3.OpPut(l.key, l.person, clientv3.WithLease(l.id)))
		}
	}
	if c != nil {
		when = append(when, clientv3.Compare(clientv3.CreateRevision(c.key), "=", 0))
		if old == nil && !c.Queue { // the line is as it was seen: at first, that there is none
			when = append(when, clientv3.Compare(clientv3.ModRevision(t.options.prefix(c.Name)).WithPrefix(), "<", t.seen+1))
		}
		then = append(then, clientv3.OpPut(c.key, c.value, clientv3.WithLease(l.id)), t.options.lineOf(c))
		otherwise = []clientv3.Op{clientv3.OpGet(c.key), t.options.lineOf(c)}
	}
	return when, then, append(otherwise, clientv3.OpGet(l.key))
}

// inWay returns a claim because of which old is not held as long as that claim is there: the first
// of the line, if it is known and enough. Else many claims that are given up together would each
// read the whole line, in which all of them are.
func (t *transaction) inWay() (first entry, known bool) {
	old := t.old
	first = old.first
	if now, watched := t.views.first(old.Name); watched {
		first = now
	}
	return first, first.create != 0 && first.create < old.create && int64(first.Weight)+int64(old.Weight) > int64(old.Limit)
}

// doubt counts attempts that had no answer and may still arrive.
func (t *transaction) doubt(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.c != nil {
		t.c.late += n
		if t.old != nil {
			t.old.late += n
		}
	}
	t.twice = t.twice || n > 0
}

// succeeded handles the answer that old has left and c was put in line. A claim that cannot be in
// this line, or may not wait, is taken out again.
func (t *transaction) succeeded(ctx context.Context, r *clientv3.TxnResponse) (a rowline.Answer, err error) {
	t.mu.Lock()
	if t.late {
		// A later request may have been answered before, and have told it.
		t.l.epoch = max(t.l.epoch, t.epoch+1)
	}
	if t.old != nil {
		t.drop(t.old)
	}
	t.mu.Unlock()
	if t.c != nil {
		a, err = t.joined(ctx, r.Header.Revision, r.Responses[len(r.Responses)-1].GetResponseRange())
	}
	a.Was, a.Twice = t.was(r), t.twice
	return a, err
}

// was reports whether old was held until it left.
func (t *transaction) was(r *clientv3.TxnResponse) bool {
	if t.old == nil || t.held || t.waits {
		return t.held
	}
	n, err := parseLine(t.old.Name, t.options.prefix(t.old.Name), r.Responses[0].GetResponseRange().Kvs)
	i := n.find(t.old.key)
	return err == nil && i >= 0 && n.holds(i) && !n.entries[i].Broken
}

// joined returns how c stands, whose key was put at a revision, in the line that was read with it.
func (t *transaction) joined(ctx context.Context, create int64, all *etcdserverpb.RangeResponse) (a rowline.Answer, err error) {
	c := t.c
	n := line{name: c.Name, entries: []entry{{value: value{Kind: c.Kind, Weight: c.Weight, Limit: c.Limit}, key: c.key, create: create}}}
	if all.Count > 1 { // else the lock was free, and nothing has to be read
		own := &mvccpb.KeyValue{Key: []byte(c.key), Value: []byte(c.value), Lease: int64(t.l.id), CreateRevision: create, ModRevision: create}
		if n, err = t.lineFor(ctx, c, []*mvccpb.KeyValue{own}, all); err == nil {
			err = n.admits(c.Claim, c.key)
		}
	}
	if err == nil && (c.Queue || n.holds(n.find(c.key))) {
		t.mu.Lock()
		a, err = c.update(&n, create)
		t.mu.Unlock()
		if err == nil {
			return a, nil
		}
	} else {
		a = t.denied(&n)
	}
	return a, t.withdraw(ctx, create, err)
}

// failed handles the answer that nothing was changed. Unless done, the transaction is to be made
// again.
func (t *transaction) failed(ctx context.Context, r *clientv3.TxnResponse) (a rowline.Answer, done bool, err error) {
	session := r.Responses[len(r.Responses)-1].GetResponseRange().Kvs
	if len(session) == 0 {
		return a, true, driver.ErrSessionLost
	}
	t.mu.Lock()
	// Never a number that was only counted: if that were larger, no request would find it.
	t.l.epoch = session[0].Version
	switch {
	case t.waits: // it waits no longer, or is gone: the line tells
		t.passed = true
	case t.held:
		t.old.held = false
	case t.c == nil && !t.late:
		t.drop(t.old)
		a.Twice, done = t.twice, true
	}
	t.mu.Unlock()
	if t.c == nil {
		return a, done, nil
	}
	return t.refused(ctx, r)
}

// refused handles the answer that c was not put in line, with the line as it is.
func (t *transaction) refused(ctx context.Context, r *clientv3.TxnResponse) (a rowline.Answer, done bool, err error) {
	c := t.c
	n, err := t.lineFor(ctx, c, r.Responses[0].GetResponseRange().Kvs, r.Responses[1].GetResponseRange())
	if err != nil {
		return a, true, err
	}
	switch i := n.find(c.key); {
	case i >= 0 && n.entries[i].ID == driver.PublicID(c.ID) && t.old == nil:
		create := n.entries[i].create
		t.mu.Lock()
		c.late = max(c.late-1, 0) // that was it
		a, err = c.update(&n, create)
		t.mu.Unlock()
		if err != nil {
			err = t.withdraw(ctx, create, err)
		}
		return a, true, err
	case i >= 0: // nobody here has put it
		return a, false, t.erase(ctx, clientv3.Compare(clientv3.CreateRevision(c.key), "=", n.entries[i].create))
	case t.old == nil && !c.Queue:
		if err := n.admits(c.Claim, ""); err != nil || !n.fits(c.Claim) {
			return t.denied(&n), true, err
		}
		t.seen = r.Header.Revision
	}
	return a, false, nil
}

// denied returns the answer that c is not held in a line.
func (t *transaction) denied(n *line) rowline.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.c.deny(n)
}

// withdraw deletes the key of c, which was put at a revision and is not to stay, and returns why.
func (t *transaction) withdraw(ctx context.Context, create int64, why error) error {
	failed := t.erase(ctx, clientv3.Compare(clientv3.CreateRevision(t.c.key), "=", create))
	if failed == nil {
		return why
	}
	t.mu.Lock()
	t.c.create = create // the key is there, and is to be released
	t.mu.Unlock()
	return unsure(failed)
}
