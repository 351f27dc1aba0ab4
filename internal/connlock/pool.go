package connlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// pool has the connections of a session: a holding connection, while it lives, and single ones. A
// connection has each of its keys for one claim, and that claim names the connection. When a
// connection ends, its claims that are held or wait are lost.
type pool struct {
	store   Store
	spec    driver.Spec
	timeout time.Duration  // of a call
	onLost  func(l *claim) // is called for a claim whose connection has ended; mu is held

	mu     sync.Mutex // guards everything that a session knows
	conns  []*conn    // two are holding connections where two calls missed it at once
	closed bool
}

// idle is how many single connections without a claim are kept.
const idle = 2

// holding returns the holding connection, and makes it where it is missing.
func (p *pool) holding(ctx context.Context) (*conn, error) { return p.take(ctx, nil, false) }

// take attaches a claim to a connection and returns that. It is the holding connection, unless that
// has the key already: a server gives a connection again what it has. Then, or if single is true,
// it is a single connection without a claim. One that is missing is made. Without a claim take
// returns the holding connection.
func (p *pool) take(ctx context.Context, l *claim, single bool) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed {
		if c := p.find(l, single); c != nil {
			return c, nil
		}
		single = single || slices.ContainsFunc(p.conns, func(c *conn) bool { return !c.single })
		p.mu.Unlock()
		err := sessions.Aside(ctx, p.timeout, func(ctx context.Context) error { return p.add(ctx, single) })
		p.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	return nil, driver.ErrSessionLost
}

// find is take, but it returns nil where a connection is missing. p.mu is held.
func (p *pool) find(l *claim, single bool) *conn {
	for _, c := range p.conns {
		if c.single && (l == nil || len(c.claims) > 0) || !c.single && (single || l != nil && c.claims[l.Key] != nil) {
			continue
		}
		if l != nil {
			c.claims[l.Key], l.conn = l, c
		}
		return c
	}
	return nil
}

// add makes a connection.
func (p *pool) add(ctx context.Context, single bool) (err error) {
	if end, ok := ctx.Deadline(); ok { // of a context without a timer, perhaps
		timed, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = timed
	}
	c := &conn{single: single, claims: map[string]*claim{}}
	if c.Conn, err = p.store.Dial(ctx, p.spec, func() { p.ended(c) }); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		c.Close()
	case !c.ended:
		p.conns = append(p.conns, c)
	}
	return nil
}

// detach separates a claim from its connection, and closes that if enough others are idle. p.mu is
// held.
func (p *pool) detach(l *claim) {
	c := l.conn
	delete(c.claims, l.Key)
	l.conn = nil
	spare := 0
	for _, other := range p.conns {
		if other.single && len(other.claims) == 0 {
			spare++
		}
	}
	if c.single && spare > idle {
		p.remove(c)
		c.Close()
	}
}

// remove takes a connection off the pool. p.mu is held.
func (p *pool) remove(c *conn) {
	c.ended = true
	p.conns = slices.DeleteFunc(p.conns, func(other *conn) bool { return other == c })
}

// ended handles the end of a connection. The session goes on with the others.
func (p *pool) ended(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(c)
	for _, l := range c.claims {
		if l.state == held || l.state == waiting {
			p.onLost(l)
		}
	}
}

// closeConn closes a connection. The server then releases what it has.
func (p *pool) closeConn(c *conn) {
	c.Close()
	p.ended(c)
}

// ping sends a Ping over a connection, and closes the connection if that fails.
func (p *pool) ping(c *conn) {
	if c.Ping() != nil {
		p.closeConn(c)
	}
}

// failed closes a connection if err, which came over it, says that it has ended.
func (p *pool) failed(c *conn, err error) {
	if errors.Is(err, ErrEnded) {
		p.closeConn(c)
	}
}

// excludes reports whether a claim that the session holds excludes l.
func (p *pool) excludes(l *claim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if other := c.claims[l.Key]; other != nil && other.state == held && (other.Kind.Exclusive() || l.Kind.Exclusive()) {
			return true
		}
	}
	return false
}
