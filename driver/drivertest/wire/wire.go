package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Wire is a proxy between any number of clients and one server. Its methods may be called
// concurrently; what they set holds for the connections that exist as well as for later ones.
type Wire struct {
	addr string
	mark net.PacketConn // of the port, as Loopback says
	ways [2]*way
	wg   sync.WaitGroup

	mu          sync.Mutex
	target      string
	listener    net.Listener // nil while connections are refused
	connections map[*connection]struct{}
	opened      int64
	closed      bool
}

// Listen opens a wire to the server at target, "host:port", which need not be up: it is dialled for
// every connection that a client makes. The context bounds the call only; Close ends the wire.
func Listen(ctx context.Context, target string) (*Wire, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("wire: the target must be host:port: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, mark, err := reserve()
	if err != nil {
		return nil, err
	}
	w := &Wire{target: target, addr: l.Addr().String(), mark: mark, ways: [2]*way{newWay(Requests), newWay(Replies)}, connections: map[*connection]struct{}{}}
	w.serve(l)
	return w, nil
}

// TB is the part of testing.TB that New uses.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
}

// New opens a wire for a test and closes it at the test's end.
func New(t TB, target string) *Wire {
	t.Helper()
	w, err := Listen(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// Addr is where clients connect, "127.0.0.1:port".
func (w *Wire) Addr() string { return w.addr }

// serve accepts connections until the listener is closed. The caller holds mu or is the only one to
// know the wire.
func (w *Wire) serve(l net.Listener) {
	w.listener = l
	w.wg.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				w.wg.Go(func() { w.connect(c.(*net.TCPConn)) })
			}
		}
	})
}

// dialLimit bounds the wait for a server that answers nothing.
const dialLimit = 10 * time.Second

// connect joins the client with the server, and resets it where there is none.
func (w *Wire) connect(client *net.TCPConn) {
	c := &connection{client: client, done: make(chan struct{})}
	if !w.enter(c) {
		c.reset()
		return
	}
	defer w.leave(c)
	dialling, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	w.wg.Go(func() {
		select {
		case <-c.done:
			cancel()
		case <-dialling.Done():
		}
	})
	w.mu.Lock()
	target := w.target
	w.mu.Unlock()
	server, err := (&net.Dialer{}).DialContext(dialling, "tcp", target)
	if err != nil || !c.join(server.(*net.TCPConn)) {
		c.reset()
		return
	}
	c.run(w.ways)
}

func (w *Wire) enter(c *connection) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener == nil {
		return false // accepted in the moment of Refuse or Close
	}
	w.opened++
	w.connections[c] = struct{}{}
	return true
}

func (w *Wire) leave(c *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.connections, c)
}

// Redirect has connections that are made from now on lead to another server. Those that are there
// stay.
func (w *Wire) Redirect(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
}

// Cut resets every connection, on both sides and stalled or not: each end sees a reset, and what
// was on its way is lost. New connections are accepted.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.connections {
		c.reset()
	}
}

// Refuse lets new connections be refused, as by a host on which no server runs. The existing ones
// go on.
func (w *Wire) Refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse()
}

func (w *Wire) refuse() {
	if w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
}

// Accept ends Refuse. It fails when another process has taken the port in between; one that chooses
// it by Loopback does not.
func (w *Wire) Accept() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return net.ErrClosed
	}
	if w.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", w.addr)
	if err != nil {
		return fmt.Errorf("wire: cannot accept connections again: %w", err)
	}
	w.serve(l)
	return nil
}

// Close resets every connection, frees the port and returns when nothing of the wire runs any more.
func (w *Wire) Close() {
	w.mu.Lock()
	w.closed = true
	w.refuse()
	_ = w.mark.Close()
	for c := range w.connections {
		c.reset()
	}
	w.mu.Unlock()
	w.wg.Wait()
}
