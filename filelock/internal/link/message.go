//go:build linux || darwin

package link

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// message is a wake-up: the hash of the name to look at.
type message [1 + len(layout.Hash{})]byte

// The kinds of messages. None of them says that something is so: the receiver looks.
const (
	kindLine    = 'l' // look at the line of the hash
	kindSession = 's' // look at the word of the session
)

func wakeUp(h layout.Hash) (m message) {
	m[0] = kindLine
	copy(m[1:], h[:])
	return m
}

// send writes m to the peer's socket if it takes it at once. It returns false when nobody listens there.
func (p *Peer) send(m message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
	for fresh := false; ; fresh = true {
		if p.conn == nil {
			if !p.link() {
				return false
			}
			fresh = true
		}
		var err error
		if werr := p.raw.Write(func(fd uintptr) bool {
			var n int
			n, err = unix.SendmsgN(int(fd), m[:], nil, nil, unix.MSG_DONTWAIT|machine.SendFlags)
			if err == nil && n < len(m) {
				err = unix.EPIPE // half a message: the rest would be taken for another one
			}
			return true
		}); werr != nil {
			err = werr
		}
		switch {
		case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
			return true
		case fresh:
			return false
		}
		p.unlink() // it was closed on the other side; who listens there now?
	}
}
