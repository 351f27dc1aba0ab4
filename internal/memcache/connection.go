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

// connection is one connection. Answers come in the order of requests: each caller reads its own, when the one before has read its.
type connection struct {
	net.Conn
	r     *bufio.Reader // of the caller whose turn it is to read; when no answer is owed, of who sends
	start int64         // when the server was started
	last  chan struct{} // closed when the answer to the last request is read: of who sends, as is used
	used  time.Time
	ended atomic.Pointer[error] // why; nil while it lives
}

// call is a request that was sent.
type call struct {
	*connection
	before, over chan struct{} // closed when the answer before, and this one, was read or never will be
	late         time.Time     // when the time for it is over
}

// quiet is after how long without a request it is looked whether the server has closed the connection meanwhile.
const quiet = time.Second

// prompt is for how long an answer is waited for without regard to whether anybody still wants it.
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
	default: // who reads will see
	}
	return c.ended.Load() == nil
}

// send writes a request. Where that fails nobody knows how much of it left, and the call ends like one without an answer.
func (c *connection) send(r *Request, timeout time.Duration) *call {
	c.used = time.Now()
	one := &call{c, c.last, make(chan struct{}), c.used.Add(timeout)}
	c.last = one.over
	if _, err := c.Write(r.text); err != nil {
		c.end(err)
	}
	return one
}

// await returns when the answer is there or never will be, and an error when ctx ends before.
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

// read reads the answer. After an error nobody knows whether the request was carried out, nor where the next answer begins.
func (c *call) read() (Reply, error) {
	defer close(c.over)
	<-c.before
	_ = c.SetReadDeadline(c.late) // the last one may be that of another request, or of a caller who is back
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

// end closes it.
func (c *connection) end(why error) {
	c.ended.CompareAndSwap(nil, &why)
	_ = c.Close()
}
