package memcache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Server is how a server is reached.
type Server struct {
	Addr           string // "host:port"
	User, Password string // of a server that was started with -Y
	TLS            *tls.Config
	Timeout        time.Duration // for one answer: then the connection is closed
}

// Client is one server over one connection, which is made when it is needed and made again after it
// has ended. Its methods may be called concurrently.
type Client struct {
	Server
	turn   chan struct{} // has a value while nobody dials or sends
	conn   *connection   // only the goroutine that took that value uses it
	closed bool          // likewise
}

// New returns a client that has not connected yet.
func New(s Server) *Client {
	c := &Client{Server: s, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// Do sends a request behind all that were sent before, and returns the answer. An error that
// matches driver.ErrNotSent says that nothing was sent; after any other the request may have been
// carried out. If ctx ends before the answer the request keeps its place, and the error is a
// [sessions.Underway].
func (c *Client) Do(ctx context.Context, request *Request) (Reply, error) {
	if err := within(ctx, c.turn); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	one, err := c.send(ctx, request)
	c.turn <- struct{}{}
	switch {
	case err != nil:
		return Reply{}, fmt.Errorf("%w: connect to %s: %w", driver.ErrNotSent, c.Addr, err)
	case one == nil: // the item of that version was lost with the server's memory
		return Reply{Status: NotFound}, nil
	}
	if err := one.await(ctx); err != nil {
		go func() { _, _ = one.read() }()
		return Reply{}, &sessions.Underway{Cause: fmt.Errorf("no answer from %s: %w", c.Addr, err), Over: one.over}
	}
	return one.read()
}

// within receives from c, or returns why ctx ended before. Mostly there is a value, and asking a
// context for its channel would cost most.
func within(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	default:
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send writes a request; the caller has the turn. After an error nothing was written. It returns
// nil, and has written nothing, if the server was restarted since it gave the version that the
// request names.
func (c *Client) send(ctx context.Context, request *Request) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.closed {
		return nil, net.ErrClosed
	}
	if c.conn == nil || !c.conn.alive() {
		conn, _, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	if request.start != 0 && request.start != c.conn.start {
		return nil, nil
	}
	return c.conn.send(request, c.Timeout), nil
}

// About returns what the server tells about itself, over a connection of its own.
func (c *Client) About(ctx context.Context) (About, error) {
	conn, about, err := c.dial(ctx)
	if err != nil {
		return About{}, fmt.Errorf("%w: connect to %s: %w", driver.ErrNotSent, c.Addr, err)
	}
	return about, conn.Close()
}

// Keys returns the keys that begin with prefix, over a connection of its own: the server goes
// through all its items. After an error some keys are missing; one that matches
// errors.ErrUnsupported says that the server lists none.
func (c *Client) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	conn, _, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for late := time.Now().Add(time.Minute); ; {
		keys, err = conn.keys(prefix, c.Timeout)
		if !errors.Is(err, errBusy) || time.Now().After(late) {
			return keys, err
		}
		<-again.C
	}
}

// errBusy: the server goes through its keys already, for another client or to find what has
// expired.
var errBusy = errors.New("the server lists its keys for somebody else")

func (c *connection) keys(prefix string, timeout time.Duration) (keys []string, err error) {
	// By its table: by its lists ("all") the server leaves out an item that is being read.
	if _, err := c.Write([]byte("lru_crawler metadump hash\r\n")); err != nil {
		return nil, err
	}
	for {
		_ = c.SetReadDeadline(time.Now().Add(timeout))
		line, err := c.r.ReadSlice('\n') // these lines alone end without \r in some versions
		if err != nil {
			return keys, err
		}
		word, _, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		escaped, found := strings.CutPrefix(word, "key=")
		switch {
		case word == "END":
			return keys, nil
		case word == "BUSY":
			return nil, errBusy
		case !found:
			err := fmt.Errorf("the server does not list its keys: it says %.80q", line)
			if strings.HasSuffix(word, "ERROR") { // as where it was started with no_lru_crawler
				err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
			}
			return keys, err
		}
		// A key that can be named only in base64 is no lock's.
		if key, err := url.PathUnescape(escaped); err == nil && strings.HasPrefix(key, prefix) && CheckKey(key) == nil {
			keys = append(keys, key)
		}
	}
}

// Close ends the connection.
func (c *Client) Close() {
	<-c.turn // for Timeout at most
	defer func() { c.turn <- struct{}{} }()
	c.closed = true
	if c.conn != nil {
		c.conn.end(net.ErrClosed)
	}
}
