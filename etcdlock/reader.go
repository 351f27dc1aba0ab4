package etcdlock

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// reader reads how claims of this process stand.
type reader struct {
	*server
	*state
}

// look finds claims that are in line as far as this process was told. It does not put them there.
func (s *reader) look(ctx context.Context, l *lease, some ...*claim) ([]rowline.Answer, error) {
	ops := []clientv3.Op{clientv3.OpGet(l.key)}
	for _, c := range some {
		ops = append(ops, clientv3.OpGet(c.key), s.options.lineOf(c), clientv3.OpGet(c.mark()))
	}
	r, _, err := s.txn(ctx, nil, ops, nil)
	if err != nil {
		return nil, err
	}
	if len(r.Responses[0].GetResponseRange().Kvs) == 0 {
		return nil, driver.ErrSessionLost
	}
	answers := make([]rowline.Answer, len(some))
	for i, c := range some {
		own, all, marks := r.Responses[3*i+1].GetResponseRange(), r.Responses[3*i+2].GetResponseRange(), r.Responses[3*i+3].GetResponseRange()
		n, err := s.lineFor(ctx, c, own.Kvs, all)
		if err != nil {
			return nil, err
		}
		if answers[i], err = s.found(c, &n); err != nil {
			return nil, err
		}
		if answers[i].State == rowline.Gone && len(marks.Kvs) > 0 {
			answers[i].State = rowline.Broken
		}
	}
	return answers, nil
}

// found returns how a claim stands whose key is known to have been put, and records it.
func (s *reader) found(c *claim, n *line) (rowline.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.update(n, c.create)
}

// lineOf reads the line of a claim as far as the claim's state depends on it: one that excludes all
// others is held if it is the first.
func (o *Options) lineOf(c *claim) clientv3.Op {
	opts := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)}
	if c.Kind.Exclusive() {
		opts = append(opts, clientv3.WithLimit(1))
	}
	return clientv3.OpGet(o.prefix(c.Name), opts...)
}

// watchers is how many processes hear of each claim that leaves a line, at most.
const watchers = 32

// lineFor returns the line of a claim by the answer to lineOf, and by the claim's own key.
func (s *reader) lineFor(ctx context.Context, c *claim, own []*mvccpb.KeyValue, all *etcdserverpb.RangeResponse) (line, error) {
	prefix := s.options.prefix(c.Name)
	n, err := parseLine(c.Name, prefix, all.Kvs)
	switch {
	case err != nil:
		return n, err
	case all.More && len(n.entries) == 0: // the first key is of a name below this one
		n, _, err = s.line(ctx, c.Name)
		return n, err
	case all.More && len(own) > 0 && n.find(c.key) < 0:
		if n, err = parseLine(c.Name, prefix, append(all.Kvs, own[0])); err != nil {
			return n, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.deep = c.Kind.Exclusive() && all.Count > watchers
	return n, nil
}
