package zk

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Options are those of a session.
type Options struct {
	Addrs   []string // "host:port"
	Timeout time.Duration
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // nil: by TCP
	TLS     *tls.Config                                                       // nil: without
	Login   Login

	// Heartbeat keeps the session alive by three requests in its timeout.
	Heartbeat bool

	// Session and Password are those of an existing session, instead of a new one.
	Session  int64
	Password []byte

	// Event is called with watched changes, Connected with each connection after the first, before
	// anything is sent over it: nothing is watched there. Over is called at the end of a session
	// that was not closed. None of them may block; all are called by one goroutine.
	Event           func(Event)
	Connected, Over func()
}

// Client is one session. Its methods may be called concurrently.
type Client struct {
	o        Options
	patience time.Duration
	ctx      context.Context //nolint:containedctx // of connecting in the background; ends with the client
	cancel   context.CancelFunc
	all      sync.WaitGroup

	session  int64
	password []byte
	timeout  time.Duration

	mu      sync.Mutex
	conn    *conn         // nil while there is none
	changed chan struct{} // closed when conn or over changes
	closing bool
	over    error
	down    error // why there is no connection
	turn    int   // of the addresses
	zxid    int64 // the latest change that was seen
}

// Dial opens a session: it asks each server once.
func Dial(ctx context.Context, o Options) (*Client, error) {
	if len(o.Addrs) == 0 {
		return nil, errors.New("zookeeper: no server: want addresses as host:port")
	}
	o.Addrs = slices.Clone(o.Addrs)
	rand.Shuffle(len(o.Addrs), func(i, j int) { o.Addrs[i], o.Addrs[j] = o.Addrs[j], o.Addrs[i] })
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	c := &Client{o: o, changed: make(chan struct{}), session: o.Session, password: o.Password}
	if len(c.password) == 0 {
		c.password = make([]byte, 16)
	}
	c.setTimeout(o.Timeout)
	first, err := c.round(ctx, false)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(err, cause)
		}
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.publish(first)
	c.all.Go(func() { c.run(first) })
	if o.Heartbeat {
		c.all.Go(c.beat)
	}
	return c, nil
}

// setTimeout sets the timeout that was asked for, or granted.
func (c *Client) setTimeout(timeout time.Duration) {
	c.timeout = timeout
	c.patience = max(timeout/3, 500*time.Millisecond)
}

// Timeout returns how long the servers keep the session without a request.
func (c *Client) Timeout() time.Duration { return c.timeout }

// Session returns the number of the session and its password.
func (c *Client) Session() (int64, []byte) { return c.session, c.password }

// run reads from one connection after another until the session is over.
func (c *Client) run(cn *conn) {
	for cn != nil {
		err := cn.read(c.see, c.o.Event)
		c.publish(nil)
		cn.end(err)
		if cn = c.again(err); cn != nil {
			if c.o.Connected != nil {
				c.o.Connected()
			}
			c.publish(cn)
		}
	}
	c.mu.Lock()
	ended := c.over == nil
	if ended {
		c.over = errExpired
		c.change()
	}
	c.mu.Unlock()
	c.cancel()
	if ended && c.o.Over != nil {
		c.o.Over()
	}
}

func (c *Client) see(zxid int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxid = max(c.zxid, zxid)
}

// publish sets the connection that calls use; if it is nil they wait for one.
func (c *Client) publish(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = cn
	if c.over != nil && cn != nil {
		_ = cn.nc.Close()
	}
	c.change()
}

func (c *Client) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// again attaches the session to another connection, however long that takes. It returns nil when
// the session is over.
func (c *Client) again(why error) *conn {
	const shortest, longest = 10 * time.Millisecond, 500 * time.Millisecond
	probe, timer := time.Now().Add(c.timeout), time.NewTimer(0)
	defer timer.Stop()
	for pause := shortest; ; pause = min(2*pause, longest) {
		c.mu.Lock()
		over := c.over
		c.down = why
		c.mu.Unlock()
		if over != nil {
			return nil
		}
		var cn *conn
		if cn, why = c.round(c.ctx, false); why == nil {
			return cn
		}
		if now := time.Now(); now.After(probe) {
			probe = now.Add(2 * c.timeout) // so that it keeps no session alive
			if behind, err := c.round(c.ctx, true); err == nil {
				_ = behind.nc.Close()
			} else if errors.Is(err, driver.ErrSessionLost) {
				why = err
			}
		}
		if errors.Is(why, driver.ErrSessionLost) {
			return nil
		}
		timer.Reset(pause + rand.N(pause))
		select {
		case <-timer.C:
		case <-c.ctx.Done():
		}
	}
}

// round tries each server once. A server that lacks changes which the client has seen closes the
// connection: it is behind, or has lost everything. If anew is true the client claims to have seen
// none, and the server tells which: the session is over, or it is there and the connection is not
// to be used.
func (c *Client) round(ctx context.Context, anew bool) (*conn, error) {
	var all []error
	for range c.o.Addrs {
		c.mu.Lock()
		addr, zxid := c.o.Addrs[c.turn%len(c.o.Addrs)], c.zxid
		c.turn++
		c.mu.Unlock()
		if anew {
			zxid = 0
		}
		cn, err := c.attach(ctx, addr, zxid)
		if err == nil {
			return cn, nil
		}
		if errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrRefused) {
			return nil, err
		}
		all = append(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("zookeeper: %w: %w", driver.ErrNotSent, errors.Join(all...))
}

// attach connects to a server, which opens the session or takes it over.
func (c *Client) attach(ctx context.Context, addr string, zxid int64) (_ *conn, err error) {
	patience := max(c.patience, time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer for %v", patience))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			// Dialers and TLS do not tell why ctx has ended.
			err = fmt.Errorf("%s does not open a session: %w", addr, context.Cause(ctx))
		}
	}()
	nc, err := c.o.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = nc.Close()
		}
	}()
	raw := nc
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	if c.o.TLS != nil {
		if nc, err = secure(ctx, c.o.TLS, nc, addr); err != nil {
			return nil, fmt.Errorf("%s: %w", addr, err)
		}
	}
	body := record{}.int(0).long(zxid).int(int32(min(c.timeout.Milliseconds(), 1<<31-1))).long(c.session).bytes(c.password).bool(false)
	if _, err := nc.Write(append(record{}.int(int32(len(body))), body...)); err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	b, err := readFrame(nc)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s has closed the connection: it has no majority, is behind, or has too many connections of this host (maxClientCnxns)", addr)
	case err != nil:
		return nil, fmt.Errorf("%s does not open a session: %w", addr, err)
	}
	r := &reader{b: b}
	r.int() // the protocol's version
	timeout, session, password := time.Duration(r.int())*time.Millisecond, r.long(), r.bytes()
	if r.bad {
		return nil, fmt.Errorf("%s does not speak ZooKeeper's protocol: %w", addr, errGarbled)
	}
	if timeout <= 0 || session == 0 {
		return nil, errExpired
	}
	if err := c.o.Login.login(nc); err != nil {
		return nil, fmt.Errorf("%s: user %q: %w", addr, c.o.Login.User, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil { // nobody else knows the client
		c.session, c.password = session, password
		c.setTimeout(timeout)
	}
	return &conn{nc: nc, patience: c.patience, all: &c.all}, nil
}

// secure begins TLS over a connection. The server's name is that of its address, unless the
// configuration has one.
func secure(ctx context.Context, config *tls.Config, nc net.Conn, addr string) (net.Conn, error) {
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	tc := tls.Client(nc, config)
	return tc, tc.HandshakeContext(ctx)
}

// Do sends calls in one flight and returns when all are answered, each with its own Err. An error
// of Do says that some are not; if ctx has ended they go on. If nothing was sent it matches
// [driver.ErrNotSent] or [driver.ErrSessionLost], and calls are not done.
func (c *Client) Do(ctx context.Context, calls ...*Call) error {
	if err := c.Send(ctx, calls...); err != nil {
		return err
	}
	return Wait(ctx, calls...)
}

// Wait is the rest of [Client.Do], after a Send.
func Wait(ctx context.Context, calls ...*Call) error {
	var failed error
	for _, call := range calls {
		if err := call.Wait(ctx); err != nil && failed == nil && !errors.As(err, new(Code)) {
			failed = err
		}
	}
	return failed
}

// Send sends calls in one flight, as soon as there is a connection.
func (c *Client) Send(ctx context.Context, calls ...*Call) error { return c.send(ctx, false, calls) }

func (c *Client) send(ctx context.Context, closing bool, calls []*Call) error {
	for {
		c.mu.Lock()
		cn, changed, over, down := c.conn, c.changed, c.over, c.down
		if c.closing && !closing {
			over = cmp.Or(over, errClosed)
		}
		c.mu.Unlock()
		switch {
		case over != nil:
			return over
		case ctx.Err() != nil:
			return notSent(ctx, down)
		case cn != nil && cn.send(calls):
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// notSent returns the error of calls for which ctx has ended before there was a connection, and why
// there is none.
func notSent(ctx context.Context, down error) error {
	if down == nil {
		return fmt.Errorf("zookeeper: %w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	return fmt.Errorf("zookeeper: %w: %w: no connection: %w", driver.ErrNotSent, context.Cause(ctx), down)
}

// beat sends the requests of Options.Heartbeat.
func (c *Client) beat() {
	t := time.NewTicker(c.timeout / 3)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			_ = c.Do(c.ctx, Get("/", false))
		case <-c.ctx.Done():
			return
		}
	}
}

// Close ends the session, and with it all its nodes. If ctx ends before the answer, the servers may
// end it only after its timeout.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	var err error
	for {
		call := closeSession()
		if err = c.send(ctx, true, []*Call{call}); err != nil {
			break
		}
		if err = call.Wait(ctx); !errors.Is(err, ErrUnanswered) {
			break
		}
	}
	if errors.Is(err, driver.ErrSessionLost) {
		err = nil
	}
	c.mu.Lock()
	if c.over == nil {
		c.over = errClosed
		if c.conn != nil {
			_ = c.conn.nc.Close()
		}
		c.change()
	}
	c.mu.Unlock()
	c.cancel()
	c.all.Wait()
	return err
}
