package memcache

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Server says where a server is and what it wants to know.
type Server struct {
	Addr           string // "host:port"
	User, Password string // of a server that was started with -Y
	TLS            *tls.Config
	Silence        time.Duration // for so long a server that owes an answer may say nothing
}

// Client is one server, over one connection, which is made when it is needed and again when it has ended. Its methods may be called
// concurrently.
type Client struct {
	server Server
	turn   chan struct{} // holds one token while nobody dials or sends
	conn   *connection   // of who has the turn
	closed bool          // likewise
}

// New returns a client that has not connected yet.
func New(s Server) *Client {
	c := &Client{server: s, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// Addr is where the server is.
func (c *Client) Addr() string { return c.server.Addr }

// Do sends requests together, behind all that were sent before, and returns the answers. An error that matches driver.ErrNotSent says that
// nothing left; after any other nobody knows what was carried out. When ctx ends before the answers the requests are under way, and keep
// their place.
func (c *Client) Do(ctx context.Context, requests ...Request) ([]Reply, error) {
	one, err := c.send(ctx, requests)
	if err != nil {
		return nil, err
	}
	var late <-chan time.Time
	if end, ok := ctx.Deadline(); ok { // a context of package sessions does not end by itself
		t := time.NewTimer(time.Until(end))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-one.over:
		return one.replies, one.err
	case <-late:
		err = context.DeadlineExceeded
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, fmt.Errorf("no answer from %s: %w", c.server.Addr, err)
}

func (c *Client) send(ctx context.Context, requests []Request) (*call, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	defer func() { c.turn <- struct{}{} }()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	if c.closed {
		return nil, fmt.Errorf("%w: the client is closed", driver.ErrNotSent)
	}
	if c.conn == nil || !c.conn.alive() {
		fresh, r, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.conn = fresh
		go fresh.listen(r)
	}
	one, err := c.conn.add(len(requests))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.server.Silence))
	all := []byte(requests[0])
	if len(requests) > 1 {
		all = bytes.Join(asBytes(requests), nil)
	}
	if _, err := c.conn.Write(all); err != nil {
		c.conn.end(err) // with this call
	}
	return one, nil
}

func asBytes(requests []Request) [][]byte {
	all := make([][]byte, len(requests))
	for i, r := range requests {
		all[i] = r
	}
	return all
}

// dial connects, and asks since when the server runs. Nothing that it sends changes anything.
func (c *Client) dial(ctx context.Context) (_ *connection, _ *bufio.Reader, err error) {
	dialer := &net.Dialer{Timeout: c.server.Silence}
	var n net.Conn
	if c.server.TLS != nil {
		n, err = (&tls.Dialer{NetDialer: dialer, Config: c.server.TLS}).DialContext(ctx, "tcp", c.server.Addr)
	} else {
		n, err = dialer.DialContext(ctx, "tcp", c.server.Addr)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	r := bufio.NewReader(n)
	_ = n.SetDeadline(time.Now().Add(c.server.Silence))
	stop := context.AfterFunc(ctx, func() { _ = n.SetDeadline(time.Unix(1, 0)) })
	start, err := c.greet(n, r)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = n.Close()
		return nil, nil, fmt.Errorf("%w: connect to %s: %w", driver.ErrNotSent, c.server.Addr, err)
	}
	_ = n.SetDeadline(time.Time{})
	return &connection{Conn: n, start: start, silence: c.server.Silence}, r, nil
}

// greet says who we are, where that is wanted, and reads what a lock has to know of the server.
func (c *Client) greet(n net.Conn, r *bufio.Reader) (start int64, err error) {
	hello := ""
	if c.server.User != "" {
		secret := c.server.User + " " + c.server.Password
		hello = fmt.Sprintf("set auth 0 0 %d\r\n%s\r\n", len(secret), secret)
	}
	if _, err := n.Write([]byte(hello + "stats\r\nstats settings\r\n")); err != nil {
		return 0, err
	}
	if hello != "" {
		line, err := readLine(r)
		if err != nil {
			return 0, err
		}
		if string(line) != "STORED" {
			return 0, fmt.Errorf("%w: the server does not take user and password: it says %q", driver.ErrRefused, line)
		}
	}
	said := map[string]string{}
	for ends := 0; ends < 2; {
		line, err := readLine(r)
		word, rest, _ := strings.Cut(string(line), " ")
		switch {
		case err != nil:
			return 0, err
		case word == "END":
			ends++
		case word == "STAT":
			name, value, _ := strings.Cut(rest, " ")
			said[name] = value
		case strings.Contains(string(line), "unauthenticated"):
			return 0, fmt.Errorf("%w: the server wants a user and a password", driver.ErrRefused)
		default:
			return 0, unexpected(line)
		}
	}
	if said["cas_enabled"] == "no" {
		return 0, fmt.Errorf("%w: the server keeps no versions of items: want it without -C", driver.ErrRefused)
	}
	now, err := strconv.ParseInt(said["time"], 10, 64)
	up, err2 := strconv.ParseInt(said["uptime"], 10, 64)
	if err != nil || err2 != nil || up < 0 || up > now {
		return 0, fmt.Errorf("%w: the server does not say since when it runs: want a memcached itself, and no proxy", driver.ErrRefused)
	}
	return now - up, nil
}

// Keys returns the keys that begin with prefix, over a connection of its own: the server goes through everything that it has.
func (c *Client) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	n, r, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	_ = n.SetDeadline(time.Now().Add(time.Minute))
	stop := context.AfterFunc(ctx, func() { _ = n.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// By its table: by its lists ("all") the server leaves out an item that somebody asks for at the moment.
	if _, err := n.Write([]byte("lru_crawler metadump hash\r\n")); err != nil {
		return nil, err
	}
	for {
		text, err := r.ReadString('\n') // these lines alone end without \r in some versions
		if err != nil {
			return nil, err
		}
		line := strings.TrimRight(text, "\r\n")
		escaped, found := strings.CutPrefix(line, "key=")
		switch {
		case line == "END":
			return keys, nil
		case strings.HasPrefix(line, "BUSY"):
			return nil, fmt.Errorf("%w: the server is listing its keys for somebody else", driver.ErrNotSent)
		case !found:
			return nil, fmt.Errorf("the server does not list its keys: it says %.80q", line)
		}
		escaped, _, _ = strings.Cut(escaped, " ")
		if key, err := url.PathUnescape(escaped); err == nil && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
}

// Close ends the connection.
func (c *Client) Close() {
	<-c.turn // nobody has it for longer than Silence
	defer func() { c.turn <- struct{}{} }()
	c.closed = true
	if c.conn != nil {
		c.conn.end(net.ErrClosed)
	}
}
