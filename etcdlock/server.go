package etcdlock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// server is an etcd and how it is asked. It knows no sessions and no claims.
type server struct {
	client  *clientv3.Client
	options Options

	ctx    context.Context //nolint:containedctx // of watches, and of requests that outlive their caller; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // counts the goroutines of ctx
}

func newServer(client *clientv3.Client, options Options) *server {
	s := &server{client: client, options: options}
	// A member that has lost its leader answers at once that it has none, instead of waiting for
	// one.
	s.ctx, s.cancel = context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	return s
}

// probe makes a request that only reads. It does not use the client's own interface, which repeats
// a request without telling why the one before failed.
func (s *server) probe(ctx context.Context) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	look := &etcdserverpb.RangeRequest{Key: []byte(s.options.Namespace + reserved + "/"), CountOnly: true}
	_, _, err := twice(ctx, s.client, func(ctx context.Context) (*etcdserverpb.RangeResponse, error) {
		return etcdserverpb.NewKVClient(s.client.ActiveConnection()).Range(ctx, look)
	})
	if err != nil {
		return fmt.Errorf("etcdlock: %s: %w", strings.Join(s.client.Endpoints(), ","), unchanged(err))
	}
	return nil
}

// limit returns the context of a request, which ends with ctx or when the store has taken too long.
// It has a timer: gRPC waits for the end of a context, whatever deadline that has.
func (s *server) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(s.options.Timeout)
	if at, ok := ctx.Deadline(); ok && at.Before(end) {
		end = at
	}
	return context.WithDeadline(metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader), end)
}

// get reads keys.
func (s *server) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	r, _, err := twice(ctx, s.client, func(ctx context.Context) (*clientv3.GetResponse, error) { return s.client.Get(ctx, key, opts...) })
	return r, err
}

// line reads the line of a name, and returns the revision that it is of.
func (s *server) line(ctx context.Context, name string) (line, int64, error) {
	prefix := s.options.prefix(name)
	r, err := s.get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return line{}, 0, err
	}
	l, err := parseLine(name, prefix, r.Kvs)
	return l, r.Header.Revision, err
}

// txn makes a transaction. Doubt is that of [twice].
func (s *server) txn(ctx context.Context, when []clientv3.Cmp, then, otherwise []clientv3.Op) (r *clientv3.TxnResponse, doubt int, err error) {
	return twice(ctx, s.client, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(when...).Then(then...).Else(otherwise...).Commit()
	})
}

// erase deletes the key that is compared, if the comparison holds.
func (s *server) erase(ctx context.Context, when clientv3.Cmp) error {
	_, _, err := s.txn(ctx, []clientv3.Cmp{when}, []clientv3.Op{clientv3.OpDelete(string(when.Key))}, nil)
	return err
}

// maxOps is how many operations a transaction has; etcd's usual limit is 128.
const maxOps = 100

// pause returns after 100 ms, or when ctx ends: a watch that has failed is tried again after that.
func pause(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}
