package etcdlock_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

// lastRevision is the last one that is a token.
const lastRevision = 1<<47 - 1

// ahead lets a client see a server as if it were many revisions ahead.
type ahead struct {
	by   atomic.Int64
	lose atomic.Bool // the answer to the next transaction
	jam  atomic.Bool // the next transaction that only deletes finds no leader
}

func (a *ahead) request(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if txn, ok := req.(*etcdserverpb.TxnRequest); ok {
		if txn.Success[0].GetRequestDeleteRange() != nil && a.jam.Swap(false) {
			return rpctypes.ErrGRPCNoLeader
		}
		for _, c := range txn.Compare {
			switch at := c.TargetUnion.(type) {
			case *etcdserverpb.Compare_CreateRevision:
				a.lower(&at.CreateRevision)
			case *etcdserverpb.Compare_ModRevision:
				a.lower(&at.ModRevision)
			}
		}
	}
	if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
		return err
	}
	switch r := reply.(type) {
	case *etcdserverpb.TxnResponse:
		if a.lose.Swap(false) {
			return status.Error(codes.Unavailable, "the answer is lost")
		}
		r.Header.Revision += a.by.Load()
		for _, op := range r.Responses {
			a.raise(op.GetResponseRange().GetKvs())
			a.raise(op.GetResponseDeleteRange().GetPrevKvs())
		}
	case *etcdserverpb.RangeResponse:
		r.Header.Revision += a.by.Load()
		a.raise(r.Kvs)
	case *etcdserverpb.DeleteRangeResponse:
		a.raise(r.PrevKvs)
	}
	return nil
}

// lower is for what the server compares; 0 says that there is no key.
func (a *ahead) lower(revision *int64) {
	if *revision > a.by.Load() {
		*revision -= a.by.Load()
	}
}

func (a *ahead) raise(kvs []*mvccpb.KeyValue) {
	for _, kv := range kvs {
		kv.CreateRevision += a.by.Load()
		kv.ModRevision += a.by.Load()
	}
}

// next has the next change be made at this revision.
func (a *ahead) next(t *testing.T, c *clientv3.Client, revision int64) {
	t.Helper()
	r, err := c.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	a.by.Store(revision - r.Header.Revision - 1)
}

// A revision beyond those that are tokens is refused, whoever comes with it, and leaves nothing
// behind.
func TestRevisionIsBeyondTheTokens(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	plain, a := client(t, server.Addr()), &ahead{}
	config, _, err := etcdlock.ParseURL(&url.URL{Scheme: "etcd", Host: server.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	config.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(a.request)}
	c, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, before := session(t, opened(t, c, nil)), session(t, opened(t, plain, nil))
	hold(t, before, mutex("held"))
	old := mutex("old")
	hold(t, s, old)
	there := keys(t, plain)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "is beyond 140737488355327, the last one that makes a token") {
			t.Errorf("%s: %v, want it refused, with the reason", what, err)
		}
		if now := keys(t, plain); !slices.Equal(now, there) {
			t.Errorf("%s has left %q, before it there were %q", what, now, there)
		}
	}
	for what, claim := range map[string]driver.Claim{"a claim": mutex("free"), "one that has to wait": mutex("held"), "a permit": permit("free")} {
		a.next(t, plain, lastRevision+1)
		_, err := s.Acquire(t.Context(), claim)
		refused(what, err)
	}
	try := mutex("free")
	try.Queue = false
	a.next(t, plain, lastRevision+1)
	_, err = s.Acquire(t.Context(), try)
	refused("a try", err)

	again := mutex("free")
	a.next(t, plain, lastRevision+1)
	a.lose.Store(true)
	if _, err := s.Acquire(t.Context(), again); err == nil || errors.Is(err, driver.ErrRefused) {
		t.Fatalf("a claim without an answer: %v", err)
	}
	_, err = s.Acquire(t.Context(), again)
	refused("one that had no answer", err)

	// What cannot be taken out of the line at that moment stands there: nobody is told otherwise,
	// and it is released.
	stands := mutex("free")
	a.next(t, plain, lastRevision+1)
	a.jam.Store(true)
	if _, err := s.Acquire(t.Context(), stands); err == nil || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a claim that stands in line though it was refused: %v", err)
	}
	if _, err := s.Release(t.Context(), stands); err != nil {
		t.Errorf("its release: %v", err)
	}
	if now := keys(t, plain); !slices.Equal(now, there) {
		t.Errorf("its release has left %q, before it there were %q", now, there)
	}

	// The last one that is a token is one, with all that a grant reserves, also above the highest
	// base.
	a.next(t, plain, lastRevision)
	last := mutex("free")
	if g := hold(t, s, last); g.Fence != lastRevision*driver.Stride || g.Fence+driver.Stride-1+1<<52 > driver.MaxFence {
		t.Errorf("the last token is %d", g.Fence)
	}
	release(t, s, last)

	a.next(t, plain, lastRevision+1)
	_, _, err = s.(driver.Requeuer).Requeue(t.Context(), old, mutex("old"))
	there = slices.DeleteFunc(there, func(key string) bool { return strings.HasPrefix(key, "old/") }) // it has left for what was refused
	refused("one that stands again", err)
}
