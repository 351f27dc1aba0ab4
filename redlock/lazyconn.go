package redlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/gather"
)

// lazyConn is a connection to a master that need not be there yet: a majority is enough to begin
// with.
type lazyConn struct {
	redisconn.Conn // nil: what is not below is for clusters and is not called
	config         redisconn.Config

	mu      sync.Mutex
	conn    redisconn.Conn
	opening chan struct{} // closed when the attempt under way is over
	err     error         // of the last attempt
	closed  bool
}

// connect opens the connections to all masters at once. It returns when all are open, or patience
// after enough are.
func connect(ctx context.Context, configs []redisconn.Config, enough int, patience time.Duration) []redisconn.Conn {
	conns, there := make([]redisconn.Conn, len(configs)), 0
	for i, config := range configs {
		conns[i] = &lazyConn{config: config}
	}
	gather.Answers(context.WithoutCancel(ctx), len(conns), patience, func(i int) error {
		_, err := conns[i].(*lazyConn).open(ctx) // whoever uses it meets the error
		return err
	}, func(_ int, err error) bool {
		if err == nil {
			there++
		}
		return there >= enough
	})
	return conns
}

// open returns the connection, and makes it if it is missing.
func (l *lazyConn) open(ctx context.Context) (redisconn.Conn, error) {
	l.mu.Lock()
	if l.conn != nil {
		defer l.mu.Unlock()
		return l.conn, nil
	}
	if l.closed {
		l.mu.Unlock()
		return nil, errClosed
	}
	if l.opening == nil {
		l.opening = make(chan struct{})
		go l.attempt(l.opening)
	}
	opening := l.opening
	l.mu.Unlock()
	if until, ends := ctx.Deadline(); ends { // it may be one without a timer
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	select {
	case <-opening:
	case <-ctx.Done():
		return nil, fmt.Errorf("redlock: connect: %w: %w", driver.ErrNotSent, ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		return l.conn, nil
	}
	return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, l.err)
}

func (l *lazyConn) attempt(opening chan struct{}) {
	conn, err := redisconn.Open(context.Background(), l.config) // it has a timeout of its own
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.opening = err, nil
	switch {
	case err != nil:
	case l.closed:
		conn.Close()
	default:
		l.conn = conn
	}
	close(opening)
}

// Do implements redisconn.Conn.
func (l *lazyConn) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	conn, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Do(ctx, cmd)
}

// DoAll implements redisconn.Conn.
func (l *lazyConn) DoAll(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	conn, err := l.open(ctx)
	if err == nil {
		return conn.DoAll(ctx, cmds)
	}
	replies := make([]redisconn.Reply, len(cmds))
	for i := range replies {
		replies[i].Err = err
	}
	return replies
}

// Subscribe implements redisconn.Conn.
func (l *lazyConn) Subscribe(ctx context.Context, key, channel string, heard func(payload string)) (*redisconn.Subscription, error) {
	conn, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Subscribe(ctx, key, channel, heard)
}

// EachMaster implements redisconn.Conn.
func (l *lazyConn) EachMaster(ctx context.Context, visit func(do redisconn.DoFunc) error) error {
	conn, err := l.open(ctx)
	if err != nil {
		return err
	}
	return conn.EachMaster(ctx, visit)
}

// Generation implements redisconn.Generations.
func (l *lazyConn) Generation() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return 1 // there is none yet: the first one has a larger number
	}
	return redisconn.Generation(l.conn)
}

// Node implements redisconn.Conn.
func (l *lazyConn) Node(string) string { return "" }

// Moves implements redisconn.Conn.
func (l *lazyConn) Moves() <-chan struct{} { return nil }

// Abandons implements redisconn.Conn.
func (l *lazyConn) Abandons() bool { return true }

// Close implements redisconn.Conn.
func (l *lazyConn) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.conn.Close()
	}
}
