package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/etcdlock"
)

// etcdWire is a client of etcd that counts what it asks, the creation of
// watches included. Renewals of leases go over a stream and are not counted.
type etcdWire struct {
	*clientv3.Client
	sent atomic.Int64
}

func openEtcdWire(p place) (*etcdWire, error) {
	w := &etcdWire{}
	var err error
	w.Client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{p.Etcd}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
				w.sent.Add(1)
				return invoke(ctx, method, req, reply, cc, o...)
			}),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
				s, err := open(ctx, d, cc, method, o...)
				if method == "/etcdserverpb.Watch/Watch" {
					s = countedStream{s, &w.sent}
				}
				return s, err
			}),
		},
	})
	return w, err
}

func (w *etcdWire) requests() int64 { return w.sent.Load() }

func (w *etcdWire) close() error { return w.Close() }

type countedStream struct {
	grpc.ClientStream
	sent *atomic.Int64
}

func (s countedStream) SendMsg(m any) error {
	s.sent.Add(1)
	return s.ClientStream.SendMsg(m)
}

// rawEtcd puts a key and deletes it, and asks nobody: the floor.
type rawEtcd struct {
	*etcdWire
	lease clientv3.LeaseID
}

func openRawEtcd(ctx context.Context, p place) (locker, error) {
	w, err := openEtcdWire(p)
	if err != nil {
		return nil, err
	}
	l, err := w.Grant(ctx, 60)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &rawEtcd{w, l.ID}, nil
}

func (r *rawEtcd) mutex(name string) mutex {
	return rawEtcdKey{r, name + "/" + strconv.FormatInt(int64(r.lease), 16)}
}

type rawEtcdKey struct {
	*rawEtcd
	key string
}

func (k rawEtcdKey) lock(ctx context.Context) (func() error, error) {
	_, err := k.Put(ctx, k.key, "", clientv3.WithLease(k.lease))
	return func() error {
		_, err := k.Delete(ctx, k.key)
		return err
	}, err
}

// concurrencyLocks are mutexes of etcd's own package. Two of one session are
// the same claim, so each goroutine has a session.
type concurrencyLocks struct {
	*etcdWire
	ttl int // in seconds; 0 = the package's default
}

func openConcurrency(_ context.Context, p place) (locker, error) {
	w, err := openEtcdWire(p)
	return concurrencyLocks{w, int(p.TTL.Seconds())}, err
}

func (c concurrencyLocks) mutex(name string) mutex {
	return concurrencyLock(sync.OnceValues(func() (*concurrency.Mutex, error) {
		s, err := concurrency.NewSession(c.Client, concurrency.WithTTL(c.ttl))
		if err != nil {
			return nil, err
		}
		return concurrency.NewMutex(s, name), nil
	}))
}

type concurrencyLock func() (*concurrency.Mutex, error)

func (open concurrencyLock) lock(ctx context.Context) (func() error, error) {
	m, err := open()
	if err != nil {
		return nil, err
	}
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return func() error { return m.Unlock(ctx) }, nil
}

// etcdInterlock is Interlock over a client, as users have one.
type etcdInterlock struct {
	interlocked
	*etcdWire
	store *metered
}

func openEtcd(ctx context.Context, p place) (locker, error) { return openEtcdLocks(ctx, p, nil) }

func openEtcdStrict(ctx context.Context, p place) (locker, error) {
	return openEtcdLocks(ctx, p, strictly())
}

func openEtcdLocks(ctx context.Context, p place, lock func() []interlock.LockOption) (_ locker, err error) {
	w, err := openEtcdWire(p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.Close()
		}
	}()
	d, err := etcdlock.New(ctx, w.Client, nil)
	if err != nil {
		return nil, err
	}
	m := &metered{Driver: d}
	client, err := interlock.New(m, &interlock.Options{TTL: p.TTL})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &etcdInterlock{interlocked{client, lock}, w, m}, nil
}

// mutex has its tokens checked.
func (i *etcdInterlock) mutex(name string) mutex {
	return tokenedMutex{i.interlocked.mutex(name).(interlockedMutex)}
}

func (i *etcdInterlock) calls() (operations, renewals int64) {
	return i.store.operations.Load(), i.store.renewals.Load()
}

func (i *etcdInterlock) close() error {
	return errors.Join(i.client.Close(), i.store.Driver.Close(context.Background()), i.Close())
}

// threadsTime is the CPU time in seconds of a process with many threads.
func threadsTime(pid int) (float64, error) {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	var all float64
	for _, t := range threads {
		used, err := runTime(strconv.Itoa(pid) + "/task/" + t.Name())
		if err == nil { // else it has just ended
			all += used
		}
	}
	return all, err
}

// etcdEnd waits until the server says that it has deleted the first key of a
// name, and so ended its lease: that lies between two looks at leases, half a
// second apart, and nobody can know it before. The waiter may hear first.
func (s *site) etcdEnd(ctx context.Context, _ adapter, name string) (time.Time, error) {
	w, err := openEtcdWire(s.place(0, 0))
	if err != nil {
		return time.Time{}, err
	}
	defer w.Close()
	r, err := w.Get(ctx, name+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return time.Time{}, err
	}
	if len(r.Kvs) == 0 {
		return time.Time{}, errors.New("bench: the killed holder has no key")
	}
	events, ok := <-w.Watch(ctx, string(r.Kvs[0].Key), clientv3.WithRev(r.Header.Revision+1), clientv3.WithFilterPut())
	if err := events.Err(); err != nil || !ok {
		return time.Time{}, errors.Join(err, ctx.Err())
	}
	return time.Now(), nil
}
