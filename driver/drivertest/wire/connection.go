package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// connection is one client's, with the connection to the server that was made for it.
type connection struct {
	client *net.TCPConn
	done   chan struct{} // closed by reset

	mu     sync.Mutex
	server *net.TCPConn // nil until the server has accepted
	over   bool
	silent bool
}

// join adds the server's side; false if the connection was reset meanwhile.
func (c *connection) join(server *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
	if c.over {
		reset(server)
	}
	return !c.over
}

// reset ends both sides at once.
func (c *connection) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	close(c.done)
	reset(c.client)
	if c.server != nil {
		reset(c.server)
	}
}

// reset closes with a RST instead of a FIN.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// run moves bytes until both ways have ended or the connection is reset.
//
// Each way has a reader, which takes what arrives at once and queues it with the time when it is
// due, and a writer, which passes it on when it is due and the way is open; none overtakes another,
// whatever the jitter. The end of a stream is queued like its bytes, so that a stall holds it back
// and a delay delays it; so is a reset. That one side has ended does not end the other way: a
// client that closes while its replies are held has its requests, and its close, delivered.
func (c *connection) run(ways [2]*way) {
	var wg sync.WaitGroup
	c.pipe(&wg, ways[0], c.client, c.server)
	c.pipe(&wg, ways[1], c.server, c.client)
	wg.Wait()
	// Both ways have ended by themselves: the ends are delivered, so this close resets nothing that
	// is on its way.
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.done)
		_ = c.client.Close()
		_ = c.server.Close()
	}
}

// queued is how many packets one way of one connection holds before the sender is made to wait.
const queued = 256

func (c *connection) pipe(wg *sync.WaitGroup, w *way, from, to *net.TCPConn) {
	queue := make(chan packet, queued)
	wg.Go(func() {
		defer close(queue)
		c.read(w, from, queue)
	})
	wg.Go(func() {
		c.write(w, to, queue)
		for p := range queue {
			w.lose(p)
		}
	})
}

// packet is what one read brought, or the end of the stream.
type packet struct {
	data []byte
	err  error // io.EOF, or why the sender's side broke
	due  time.Time
}

func (c *connection) read(w *way, from *net.TCPConn, queue chan<- packet) {
	var f framer
	b := make([]byte, 64<<10) // tests that count requests take what is sent together for whole ones
	for {
		n, err := from.Read(b)
		p := packet{data: w.screen(&f, b[:n]), err: err}
		if c.silenced(w, p.data) {
			p.data = nil
		}
		if len(p.data) == 0 && err == nil {
			continue
		}
		w.keepBack(p.data, c.done)
		p.due = w.due()
		w.hold(p)
		select {
		case queue <- p:
		case <-c.done:
			w.lose(p)
			return
		}
		if err != nil {
			return
		}
	}
}

// silenced reports whether the connection brings nothing any more, be it because this packet
// matches.
func (c *connection) silenced(w *way, packet []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.silent && len(packet) > 0 {
		c.silent = w.silences(packet)
	}
	return c.silent
}

func (c *connection) write(w *way, to *net.TCPConn, queue <-chan packet) {
	for p := range queue {
		if !w.pass(p, c.done) {
			w.lose(p)
			return
		}
		if len(p.data) > 0 {
			if _, err := to.Write(p.data); err != nil {
				c.reset() // the receiver is gone, and its sender learns of it
				return
			}
		}
		switch {
		case p.err == nil:
		case errors.Is(p.err, io.EOF):
			_ = to.CloseWrite()
		default:
			c.reset()
		}
	}
}
