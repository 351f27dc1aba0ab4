//go:build linux || darwin

package filelock

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// peer is another session as this process knows it: its file, and a link to its socket. The link carries wake-ups to
// the session's process and, by its end, the hint that the process is dead.
//
// A goroutine follows the link as long as there is one. It sees three things: the end of the link, after which it asks
// for the verdict again and again, because processes that inherited the session's lock may outlive the one that
// listened; the end of the session's time, which it looks for whenever the time known last has passed; and that nobody
// is interested any more. When the session is over, every desk that watches it checks its line.
type peer struct {
	d    *Driver
	key  layout.SessionKey
	file *layout.SessionFile

	mu       sync.Mutex
	conn     *net.UnixConn
	raw      syscall.RawConn
	followed bool // a goroutine follows the session
	dead     bool
	watchers map[*desk]bool
	used     time.Time
}

const (
	linkLinger   = 10 * time.Second // an unused link is closed after that
	linkGlance   = 5 * time.Second  // timers stop while the machine is suspended; the boot-time clock does not
	probeFirst   = 50 * time.Microsecond
	probeLongest = 50 * time.Millisecond
	maxPeers     = 512 // known at most without being linked
)

// peer returns the session of key as a peer. The error matches os.ErrNotExist when the session is over.
func (d *Driver) peer(key layout.SessionKey) (*peer, error) {
	d.mu.Lock()
	p, closed := d.peers[key], d.closed
	d.mu.Unlock()
	if p != nil {
		return p, nil
	}
	if closed {
		return nil, layout.ErrClosed
	}
	f, err := d.st.OpenSession(key)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.peers[key]; other != nil {
		f.File.Close()
		return other, nil
	}
	if d.closed {
		f.File.Close()
		return nil, layout.ErrClosed
	}
	p = &peer{d: d, key: key, file: f, watchers: map[*desk]bool{}, used: time.Now()}
	d.peers[key] = p
	if len(d.peers) > maxPeers {
		for key, old := range d.peers {
			// Not the usual order of locks, so it may only be tried; who is busy is not idle.
			if old != p && old.mu.TryLock() {
				if !old.followed && len(old.watchers) == 0 {
					delete(d.peers, key)
				}
				old.mu.Unlock()
			}
		}
	}
	return p, nil
}

// link connects to the peer's socket unless nobody listens. The peer's mu is held.
func (p *peer) link() bool {
	if p.dead || p.d.ctx.Err() != nil {
		return false
	}
	path, err := p.file.Socket()
	if err != nil {
		return false
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return false
	}
	p.conn, p.raw = conn, raw
	p.follow()
	return true
}

// unlink closes the link. The peer's mu is held.
func (p *peer) unlink() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// watch has k checked when the session is over. It returns false when it already is.
func (p *peer) watch(k *desk) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false
	}
	if p.watchers[k] && p.followed {
		return true
	}
	p.watchers[k] = true
	if p.conn == nil {
		p.link()
	}
	if !p.followed {
		p.follow() // nobody listens: seek the verdict
	} else if p.conn != nil {
		_ = p.conn.SetReadDeadline(time.Now().Add(p.nextGlance()))
	}
	return true
}

// follow starts the goroutine. The peer's mu is held.
func (p *peer) follow() {
	if !p.followed {
		p.followed = true
		p.d.start(p.run)
	}
}

// nextGlance is the time until the session's time may be over. The peer's mu is held.
func (p *peer) nextGlance() time.Duration {
	if len(p.watchers) == 0 {
		return linkLinger
	}
	until, live := p.file.Until()
	if !live {
		return time.Nanosecond
	}
	return min(max(time.Duration(until-p.d.st.BootClock()), 0)+time.Millisecond, linkGlance)
}

// run follows the session until it is over or nobody is interested.
func (p *peer) run() {
	pause := probeFirst
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		conn, interested := p.glance()
		if !interested {
			return
		}
		if conn != nil {
			var b [1]byte
			// Nothing comes this way, so Read returns at the deadline or at the end of the link.
			if _, err := conn.Read(b[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.mu.Lock()
				if p.conn == conn {
					p.unlink()
				}
				p.mu.Unlock()
				pause = probeFirst
				if p.file.Orphaned() {
					p.bury()
					return
				}
			}
			if p.file.Over() {
				p.die()
				return
			}
			continue
		}
		if pause < time.Millisecond {
			machine.Nap(pause) // a dead process closes its files one after the other, some microseconds apart
		} else {
			t.Reset(pause)
			select {
			case <-p.d.ctx.Done():
			case <-t.C:
			}
		}
		if p.file.Over() {
			p.die()
			return
		}
		if p.file.Orphaned() {
			p.bury()
			return
		}
		if pause = min(2*pause, probeLongest); pause == probeLongest {
			// It lives. Perhaps it was stopped with more links waiting than its socket takes.
			p.mu.Lock()
			p.link()
			p.mu.Unlock()
		}
	}
}

// glance sets the deadline of the next look and returns the link, nil if there is none. It reports false when the
// goroutine is to end.
func (p *peer) glance() (conn *net.UnixConn, interested bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.watchers {
		if k.waiting.Load() == 0 {
			delete(p.watchers, k)
		}
	}
	if p.d.ctx.Err() != nil || len(p.watchers) == 0 && (p.conn == nil || time.Since(p.used) > linkLinger) {
		p.unlink()
		p.followed = false
		return nil, false
	}
	if p.conn != nil {
		_ = p.conn.SetReadDeadline(time.Now().Add(p.nextGlance()))
	}
	return p.conn, true
}

// die ends the peer: the session is over. A process that was only stopped finds the message when it goes on.
func (p *peer) die() {
	p.send(message{kindSession})
	p.mu.Lock()
	p.dead, p.followed = true, false
	p.unlink()
	watchers := p.watchers
	p.watchers = nil
	p.mu.Unlock()
	for k := range watchers {
		k.check()
	}
	p.forget()
}

// bury ends the peer: nobody is left who acts for the session, so its files can go.
func (p *peer) bury() {
	p.file.Remove()
	p.die()
}

// forget removes the peer; whoever needs it again opens its file again.
func (p *peer) forget() {
	p.d.mu.Lock()
	if p.d.peers[p.key] == p {
		delete(p.d.peers, p.key)
	}
	p.d.mu.Unlock()
}

// close ends the link when the driver is closed.
func (p *peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlink()
}
