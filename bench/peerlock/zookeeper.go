package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// zookeeperLock is the Lock of go-zookeeper. That has no way to give up: who
// does closes the session, which takes its node out of the line.
type zookeeperLock struct {
	addrs []string
	name  string
	ttl   time.Duration // the session's timeout
	conn  *zk.Conn
	held  *zk.Lock
}

func openZooKeeper(_ context.Context, addr, name string, ttl time.Duration) (locker, error) {
	l := &zookeeperLock{addrs: strings.Split(addr, ","), name: name, ttl: ttl}
	return l, l.connect()
}

func (l *zookeeperLock) connect() (err error) {
	l.conn, _, err = zk.Connect(l.addrs, l.ttl, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	return err
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// tryFor is what a Lock has to come to hold when it is not to wait: nothing
// says whether somebody is ahead of it.
const tryFor = time.Second

func (l *zookeeperLock) lock(_ context.Context, wait time.Duration) (string, error) {
	if l.held != nil {
		return "", errors.New("the lock is held here already")
	}
	m := zk.NewLock(l.conn, "/"+l.name, zk.WorldACL(zk.PermAll))
	done := make(chan error, 1)
	go func() { done <- m.Lock() }()
	var over <-chan time.Time
	if wait >= 0 {
		t := time.NewTimer(wait + tryFor)
		defer t.Stop()
		over = t.C
	}
	select {
	case err := <-done:
		if err != nil {
			return "", err
		}
		l.held = m
		return "/" + l.name + "=" + strconv.FormatInt(l.conn.SessionID(), 16), nil
	case <-over:
		l.conn.Close()
		return "", errors.Join(errTimeout, l.connect())
	}
}

func (l *zookeeperLock) unlock(context.Context) error {
	if l.held == nil {
		return errNotHeld
	}
	err := l.held.Unlock()
	l.held = nil
	return err
}

func (l *zookeeperLock) extend(context.Context, time.Duration) error {
	return errors.New("a session is kept alive, and not extended")
}

func (l *zookeeperLock) close(context.Context) { l.conn.Close() }
