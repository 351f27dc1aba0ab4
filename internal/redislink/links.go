// Package redislink keeps the connections to a Redis whose master may move behind one address: that
// of a managed Redis, of a Kubernetes service, of a proxy.
//
// A failover there makes a replica of the server that was master, or restarts it, and gives the
// address to another one. Open connections stay connected to the former master, for good: it lives,
// and refuses writes. So when a server answers that it is not the master, or not yet, its
// connections are closed. New ones resolve the address again.
package redislink

import (
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// RingScale is the logarithm of how many commands may be in flight on one connection, for which
// rueidis allocates room from the beginning. A command beyond that blocks, whatever its context.
// Only a test binary changes it, before it connects.
var RingScale = 10

// between is the least time between two calls of End that close: requests over the former
// connections are answered meanwhile.
const between = 100 * time.Millisecond

// Links are the open connections to a server, or the subscriptions, of which each has one. The zero
// value is ready, and methods may be called concurrently.
type Links struct {
	mu     sync.Mutex
	count  int
	open   map[int]func()
	closed bool
	ended  atomic.Int64 // when, in ns; 0 for never
}

// Add adds a link that end closes, and returns a function that removes it. After Close it is closed
// at once.
func (l *Links) Add(end func()) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		go end()
		return func() {}
	}
	if l.open == nil {
		l.open = map[int]func(){}
	}
	l.count++
	n := l.count
	l.open[n] = end
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, n)
	}
}

// End closes all that is open, and reports whether it did: not if it was done a moment ago.
func (l *Links) End() bool {
	l.mu.Lock()
	if l.since() < between {
		l.mu.Unlock()
		return false
	}
	l.ended.Store(time.Now().UnixNano())
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for _, end := range open {
		end()
	}
	return true
}

// Close closes all that is open, and whatever comes later: a client that was closed while it made a
// connection keeps that.
func (l *Links) Close() {
	l.mu.Lock()
	l.closed = true
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for _, end := range open {
		end()
	}
}

// since is how long ago the last end was.
func (l *Links) since() time.Duration {
	if t := l.ended.Load(); t != 0 {
		return time.Since(time.Unix(0, t))
	}
	return math.MaxInt64
}

// Lately reports whether End has closed all links within the last minute, so that connections which
// are not links may still lead to the former master.
func (l *Links) Lately() bool { return l.since() < time.Minute }

// Probe returns a write that changes nothing, which only a master accepts. A user who may lock key
// has the right to it.
func Probe(key string) []string { return []string{"DEL", key + ":none"} }

// Adopt makes c a link.
func (l *Links) Adopt(c net.Conn) net.Conn { return &conn{c, l.Add(func() { _ = c.Close() })} }

type conn struct {
	net.Conn
	forget func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.forget()
	return c.Conn.Close()
}
