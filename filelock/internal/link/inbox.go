//go:build linux || darwin

package link

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// A Receiver is what an inbox tells of the messages that come.
type Receiver interface {
	Live() bool         // whether the session's time goes on; if not, the inbox is closed
	Look(h layout.Hash) // the line of the record of this hash may have changed
	LookAtAll()         // any line of the session may have changed
}

// Inbox takes the links that others open to a session's socket, and reads them.
type Inbox struct {
	ctx   context.Context //nolint:containedctx // of all that goes on in the background; ends when the driver is closed
	start func(func())
	sock  *layout.Listener
	to    Receiver

	mu    sync.Mutex
	conns map[*net.UnixConn]bool // nil once the inbox is closed
}

// NewInbox returns the inbox of sock. What it does in the background is run by start, and ends with ctx.
func NewInbox(ctx context.Context, sock *layout.Listener, start func(func()), to Receiver) *Inbox {
	return &Inbox{ctx: ctx, start: start, sock: sock, to: to, conns: map[*net.UnixConn]bool{}}
}

// Serve accepts links until the inbox is closed. Each is read by a goroutine of its own until its end.
func (in *Inbox) Serve() {
	for {
		conn, err := in.sock.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, most likely. The others' wake-ups wait in the backlog.
			again := time.NewTimer(100 * time.Millisecond)
			select {
			case <-in.ctx.Done():
				again.Stop()
				return
			case <-again.C:
			}
			continue
		}
		if !in.add(conn) {
			conn.Close()
			continue
		}
		in.start(func() { in.read(conn) })
	}
}

// add notes a link, so that Close closes it. It returns false if the inbox is closed.
func (in *Inbox) add(conn *net.UnixConn) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.conns == nil {
		return false
	}
	in.conns[conn] = true
	return true
}

func (in *Inbox) remove(conn *net.UnixConn) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.conns, conn)
}

// batch is how many wake-ups are read at once. When the buffer is full others may have been dropped, so everything
// that waits is looked at.
const batch = 256

// read carries out the wake-ups that come by conn.
func (in *Inbox) read(conn *net.UnixConn) {
	defer in.remove(conn)
	defer conn.Close()
	var m message
	r := bufio.NewReaderSize(conn, batch*len(m))
	for {
		if _, err := io.ReadFull(r, m[:]); err != nil {
			return
		}
		if !in.to.Live() {
			in.Close() // whoever watches the session by a link learns at once
			return
		}
		if r.Buffered() > (batch-2)*len(m) {
			_, _ = r.Discard(r.Buffered() / len(m) * len(m)) // no more than there are
			in.to.LookAtAll()
			continue
		}
		if m[0] == kindLine {
			in.to.Look(layout.Hash(m[1:]))
		}
	}
}

// Close closes the socket and every link to it.
func (in *Inbox) Close() {
	in.sock.Close()
	in.mu.Lock()
	defer in.mu.Unlock()
	for conn := range in.conns {
		conn.Close()
	}
	in.conns = nil
}
