package memcache

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// connection is one connection. Answers come in the order of requests.
type connection struct {
	net.Conn
	start   int64
	silence time.Duration // from the server for so long, while it owes an answer, ends the connection

	mu      sync.Mutex
	pending []*call // without their answers, in order
	ended   error   // why; nil while it lives
}

// call is some requests that were sent together.
type call struct {
	replies []Reply
	got     int
	err     error
	over    chan struct{} // closed when all are answered, or never will be
}

// add takes in a call that is about to be sent.
func (c *connection) add(requests int) (*call, error) {
	one := &call{replies: make([]Reply, requests), over: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}
	c.pending = append(c.pending, one)
	if len(c.pending) == 1 {
		c.owe()
	}
	return one, nil
}

// owe begins the server's time anew. The mutex is held.
func (c *connection) owe() {
	var end time.Time
	if len(c.pending) > 0 {
		end = time.Now().Add(c.silence)
	}
	_ = c.SetReadDeadline(end) // fails only where it has ended
}

// alive reports whether something can be sent.
func (c *connection) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended == nil
}

// listen hands out answers until the connection ends.
func (c *connection) listen(r *bufio.Reader) {
	for {
		reply, err := readReply(r)
		if err == nil {
			reply.Start = c.start
			err = c.take(reply)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

func (c *connection) take(reply Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return errors.New("an answer that nobody has asked for")
	}
	first := c.pending[0]
	first.replies[first.got] = reply
	if first.got++; first.got == len(first.replies) {
		c.pending = c.pending[1:]
		close(first.over)
	}
	c.owe()
	return nil
}

// end closes it. Of what has no answer nobody knows whether it was carried out.
func (c *connection) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return
	}
	c.ended = fmt.Errorf("%s: the connection has ended: %w", c.RemoteAddr(), why)
	_ = c.Close()
	for _, one := range c.pending {
		one.err = c.ended
		close(one.over)
	}
	c.pending = nil
}
