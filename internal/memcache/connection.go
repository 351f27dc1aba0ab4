package memcache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// connection is one connection. Answers come in the order of requests: each caller reads its own
// after the caller before.
type connection struct {
	net.Conn
	r     *bufio.Reader         // of the caller whose answer is next; while there is none, of the sender
	start int64                 // when the server was started
	last  chan struct{}         // closed when the last answer was read; only the sender uses it, and used
	used  time.Time             // when the last request was sent
	ended atomic.Pointer[error] // why; nil while it lives
}

// call is a request that was sent.
type call struct {
	*connection
	before chan struct{} // closed when the answer before was read or never will be
	over   chan struct{} // closed when this one was
	late   time.Time     // when the time for it is over
}

// quiet is after how long without a request the connection is checked before it is used.
const quiet = time.Second

// prompt is for how long an answer is waited for without watching the caller's context.
const prompt = time.Millisecond

// alive reports whether something can be sent.
func (c *connection) alive() bool {
	select {
	case <-c.last:
		if c.r.Buffered() > 0 || time.Since(c.used) > quiet {
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Microsecond))
			switch _, err := c.r.Peek(1); {
			case err == nil:
				c.end(errors.New("the server says what nobody asked"))
			case !errors.Is(err, os.ErrDeadlineExceeded):
				c.end(fmt.Errorf("closed by the server: %w", err))
			}
		}
	default: // a caller reads, and will notice
	}
	return c.ended.Load() == nil
}

// send writes a request. If that fails some of it may have been sent, and the call ends like one
// without an answer.
func (c *connection) send(r *Request, timeout time.Duration) *call {
	c.used = time.Now()
	one := &call{c, c.last, make(chan struct{}), c.used.Add(timeout)}
	c.last = one.over
	if _, err := c.Write(r.text); err != nil {
		c.end(err)
	}
	return one
}

// await returns nil when the answer is there or never will be, and an error if ctx ends before.
func (c *call) await(ctx context.Context) error {
	if err := within(ctx, c.before); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(prompt)) // to watch ctx costs more than to wait for most answers
	if _, err := c.r.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	_ = c.SetReadDeadline(c.late)
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		close(woken)
	})
	_, _ = c.r.Peek(1) // read will say what is wrong
	if stop() {
		return nil
	}
	<-woken
	return ctx.Err()
}

// read reads the answer. After an error the request may have been carried out, and where the next
// answer begins is unknown.
func (c *call) read() (Reply, error) {
	defer close(c.over)
	<-c.before
	_ = c.SetReadDeadline(c.late) // await may have set another, for this or for another request
	reply, err := Reply{}, error(nil)
	if c.ended.Load() == nil {
		if reply, err = readReply(c.r); err != nil {
			c.end(err)
		}
	}
	if why := c.ended.Load(); why != nil {
		return Reply{}, fmt.Errorf("%s: the connection has ended: %w", c.RemoteAddr(), *why)
	}
	reply.Start = c.start
	return reply, reply.err
}

// end closes the connection, and records why.
func (c *connection) end(why error) {
	c.ended.CompareAndSwap(nil, &why)
	_ = c.Close()
}
