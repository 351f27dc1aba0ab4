package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/zklock"
)

// zkCount counts the requests that go over connections to a ZooKeeper,
// heartbeats included. Each begins with its length in four bytes; a write may
// have several of them, and ends with the last.
type zkCount struct{ sent atomic.Int64 }

func (c *zkCount) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, addr)
	return countedConn{nc, c}, err
}

func (c *zkCount) dialWithin(network, addr string, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.dial(ctx, network, addr)
}

func (c *zkCount) requests() int64 { return c.sent.Load() }

type countedConn struct {
	net.Conn
	count *zkCount
}

func (c countedConn) Write(b []byte) (int, error) {
	for rest := b; len(rest) >= 4; {
		c.count.sent.Add(1)
		rest = rest[min(len(rest), 4+int(binary.BigEndian.Uint32(rest))):]
	}
	return c.Conn.Write(b)
}

// goZooKeeper is a session of go-zookeeper.
type goZooKeeper struct {
	*zk.Conn
	*zkCount
}

func dialGoZooKeeper(p place) (goZooKeeper, error) {
	count := new(zkCount)
	const timeout = 30 * time.Second
	c, _, err := zk.Connect([]string{p.ZooKeeper}, timeout, zk.WithDialer(count.dialWithin), zk.WithLogInfo(false))
	return goZooKeeper{c, count}, err
}

func (g goZooKeeper) close() error {
	g.Close()
	return nil
}

// zkKey is the node of a lock of ours.
func zkKey(name string) any { return "/" + strings.ReplaceAll(name, "/", "%2F") }

// zookeeperEnd is when the server tells others that the session of whoever is
// first in line has ended, which it waits for.
func (s *site) zookeeperEnd(ctx context.Context, a adapter, name string) (time.Time, error) {
	g, err := dialGoZooKeeper(place{ZooKeeper: s.zookeeper.Addr()})
	if err != nil {
		return time.Time{}, err
	}
	defer g.Close()
	dir := a.keyOf(name).(string)
	line, _, err := g.Children(dir)
	if err != nil || len(line) == 0 {
		return time.Time{}, fmt.Errorf("bench: %d claims stand below %s: want that of the killed holder: %w", len(line), dir, err)
	}
	number := func(node string) string { return node[strings.LastIndexByte(node, '-')+1:] }
	first := slices.MinFunc(line, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	there, _, gone, err := g.ExistsW(dir + "/" + first)
	if err != nil || !there {
		return time.Time{}, fmt.Errorf("bench: the killed holder's node is there: %v: %w", there, err)
	}
	select {
	case <-gone:
		return time.Now(), nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// rawZooKeeper makes a node and deletes it, and asks nobody: the floor.
type rawZooKeeper struct{ goZooKeeper }

func openRawZooKeeper(_ context.Context, p place) (locker, error) {
	g, err := dialGoZooKeeper(p)
	return rawZooKeeper{g}, err
}

func (r rawZooKeeper) mutex(name string) mutex {
	return rawNode{r, "/raw-" + strings.ReplaceAll(name, "/", "-")}
}

type rawNode struct {
	rawZooKeeper
	path string
}

func (n rawNode) lock(context.Context) (func() error, error) {
	path, err := n.Create(n.path, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return func() error { return n.Delete(path, -1) }, err
}

// goLocks are Locks of go-zookeeper. Each goroutine has one, all of a process
// a session.
type goLocks struct{ goZooKeeper }

func openGoZooKeeper(_ context.Context, p place) (locker, error) {
	g, err := dialGoZooKeeper(p)
	return goLocks{g}, err
}

func (g goLocks) mutex(name string) mutex {
	return goLock{g, zk.NewLock(g.Conn, "/"+name, zk.WorldACL(zk.PermAll))}
}

type goLock struct {
	goLocks
	m *zk.Lock
}

// lock ends with the session where ctx does: a Lock cannot be told to stop.
func (l goLock) lock(ctx context.Context) (func() error, error) {
	defer context.AfterFunc(ctx, l.Close)()
	if err := l.m.Lock(); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return l.m.Unlock, nil
}

// zkInterlock is Interlock over one session, as users have one.
type zkInterlock struct {
	interlocked
	*zkCount
	driver driver.Driver
}

func openZooKeeper(ctx context.Context, p place) (locker, error) {
	return openZooKeeperLocks(ctx, p, nil)
}

func openZooKeeperStrict(ctx context.Context, p place) (locker, error) {
	return openZooKeeperLocks(ctx, p, strictly())
}

func openZooKeeperLocks(ctx context.Context, p place, lock func() []interlock.LockOption) (locker, error) {
	count := new(zkCount)
	d, err := zklock.New(ctx, []string{p.ZooKeeper}, &zklock.Options{Dial: count.dial})
	if err != nil {
		return nil, err
	}
	client, err := interlock.New(d, &interlock.Options{TTL: p.TTL})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &zkInterlock{interlocked{client, lock}, count, d}, nil
}

// mutex has its tokens checked.
func (i *zkInterlock) mutex(name string) mutex {
	return tokenedMutex{i.interlocked.mutex(name).(interlockedMutex)}
}

func (i *zkInterlock) close() error {
	return errors.Join(i.client.Close(), i.driver.Close(context.Background()))
}
