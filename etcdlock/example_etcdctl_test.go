package etcdlock_test

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/etcdlock"
)

// What stands in docs/from-etcdctl.md.
var (
	_ = byConcurrency
	_ = byInterlock
)

func byConcurrency(ctx context.Context, etcd *clientv3.Client, work func(context.Context) error) error {
	session, err := concurrency.NewSession(etcd, concurrency.WithTTL(15))
	if err != nil {
		return err
	}
	defer session.Close()
	m := concurrency.NewMutex(session, "nightly")
	if err := m.Lock(ctx); err != nil {
		return err
	}
	defer m.Unlock(context.Background()) //nolint:errcheck // as it is often written
	return work(ctx)
}

func byInterlock(ctx context.Context, etcd *clientv3.Client, work func(context.Context) error) error {
	driver, err := etcdlock.New(ctx, etcd, nil)
	if err != nil {
		return err
	}
	defer driver.Close(context.Background())
	locks, err := interlock.New(driver, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	return locks.Mutex("nightly").Do(ctx, work)
}
