//go:build linux || darwin

package filelock

import (
	"bufio"
	"errors"
	"io"
	"net"
	"time"

	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// accept takes the links that others open to the session's socket: each is read by a goroutine of its own until its
// end.
func (s *session) accept() {
	for {
		conn, err := s.sock.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, most likely. The others' wake-ups wait in the backlog.
			again := time.NewTimer(100 * time.Millisecond)
			select {
			case <-s.d.ctx.Done():
				again.Stop()
				return
			case <-again.C:
			}
			continue
		}
		s.mu.Lock()
		gone := s.conns == nil
		if !gone {
			s.conns[conn] = true
		}
		s.mu.Unlock()
		if gone {
			conn.Close()
			continue
		}
		s.d.start(func() { s.read(conn) })
	}
}

// inbox is how many wake-ups are read at once. When the buffer is full others may have been dropped, so everything
// that waits is looked at.
const inbox = 256

// read carries out the wake-ups that come by conn.
func (s *session) read(conn *net.UnixConn) {
	defer func() {
		conn.Close()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	var m message
	r := bufio.NewReaderSize(conn, inbox*len(m))
	for {
		if _, err := io.ReadFull(r, m[:]); err != nil {
			return
		}
		if _, live := s.file.Until(); !live {
			// Somebody found the session's time over. Whoever watches it by a link learns at once.
			s.end()
			s.hangUp()
			return
		}
		if r.Buffered() > (inbox-2)*len(m) {
			_, _ = r.Discard(r.Buffered() / len(m) * len(m)) // no more than there are
			s.lookAtAll()
			continue
		}
		if m[0] == kindLine {
			s.d.wake(layout.Hash(m[1:]))
		}
	}
}

// wake looks at one line.
func (d *Driver) wake(h layout.Hash) {
	if d.deaf.Load() {
		return
	}
	if k := d.known(h); k != nil {
		defer d.leave(k)
		if k.look(false) != nil {
			k.check()
		}
	}
}

// lookAtAll looks at the lines of all claims of the session.
func (s *session) lookAtAll() {
	s.mu.Lock()
	desks := map[*desk]bool{}
	for _, c := range s.claims {
		desks[c.k] = true
	}
	s.mu.Unlock()
	for k := range desks {
		s.d.wake(k.hash)
	}
}

// hangUp closes the socket and every link to it.
func (s *session) hangUp() {
	s.sock.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
	s.conns = nil
}
