//go:build linux || darwin

package filelock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// tell has the process of a session look at a line. It never waits: a message that finds the socket full is dropped,
// because then the receiver has unread ones and looks at everything when he has read them.
func (d *Driver) tell(key layout.SessionKey, k *desk) {
	p, err := d.peer(key)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			k.check() // it died, or left, just now
		}
		return
	}
	p.file.Changed()
	d.stats.messages.Add(1)
	if !p.send(wakeUp(k.hash)) {
		p.watch(k) // nobody listens: seek the verdict, and check the line after it
	}
}

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
func (p *peer) send(m message) bool {
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
