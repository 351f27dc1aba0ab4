//go:build linux || darwin

package link

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

// A Watcher waits for sessions to be over.
type Watcher interface {
	Waits() bool // whether it still waits for anybody; it does not block
	Check()      // a session is over; it does not block
}

// Peer is another session as this process knows it: its file, and a link to its socket. The link carries wake-ups to
// the session's process and, by its end, the hint that the process is dead.
//
// A goroutine follows the link as long as there is one. It sees three things: the end of the link, after which it asks
// for the verdict again and again, because processes that inherited the session's lock may outlive the one that
// listened; the end of the session's time, which it looks for whenever the time known last has passed; and that nobody
// is interested any more. When the session is over, all its watchers are checked.
type Peer struct {
	File *layout.SessionFile

	set *Peers
	key layout.SessionKey

	mu       sync.Mutex
	conn     *net.UnixConn
	raw      syscall.RawConn
	followed bool // a goroutine follows the session
	dead     bool
	watchers map[Watcher]bool
	used     time.Time
}

const (
	linkLinger   = 10 * time.Second // an unused link is closed after that
	linkGlance   = 5 * time.Second  // timers stop while the machine is suspended; the boot-time clock does not
	probeFirst   = 50 * time.Microsecond
	probeLongest = 50 * time.Millisecond
)

// link connects to the peer's socket unless nobody listens. The peer's mu is held.
func (p *Peer) link() bool {
	if p.dead || p.set.ctx.Err() != nil {
		return false
	}
	path, err := p.File.Socket()
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
func (p *Peer) unlink() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// Watch has w checked when the session is over. It returns false when it already is.
func (p *Peer) Watch(w Watcher) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false
	}
	if p.watchers[w] && p.followed {
		return true
	}
	p.watchers[w] = true
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
func (p *Peer) follow() {
	if !p.followed {
		p.followed = true
		p.set.start(p.run)
	}
}

// nextGlance is the time until the session's time may be over. The peer's mu is held.
func (p *Peer) nextGlance() time.Duration {
	if len(p.watchers) == 0 {
		return linkLinger
	}
	until, live := p.File.Until()
	if !live {
		return time.Nanosecond
	}
	return min(max(time.Duration(until-p.set.st.BootClock()), 0)+time.Millisecond, linkGlance)
}

// run follows the session until it is over or nobody is interested.
func (p *Peer) run() {
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
				if p.File.Orphaned() {
					p.bury()
					return
				}
			}
			if p.File.Over() {
				p.Die()
				return
			}
			continue
		}
		if pause < time.Millisecond {
			machine.Nap(pause) // a dead process closes its files one after the other, some microseconds apart
		} else {
			t.Reset(pause)
			select {
			case <-p.set.ctx.Done():
			case <-t.C:
			}
		}
		if p.File.Over() {
			p.Die()
			return
		}
		if p.File.Orphaned() {
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
func (p *Peer) glance() (conn *net.UnixConn, interested bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watchers {
		if !w.Waits() {
			delete(p.watchers, w)
		}
	}
	if p.set.ctx.Err() != nil || len(p.watchers) == 0 && (p.conn == nil || time.Since(p.used) > linkLinger) {
		p.unlink()
		p.followed = false
		return nil, false
	}
	if p.conn != nil {
		_ = p.conn.SetReadDeadline(time.Now().Add(p.nextGlance()))
	}
	return p.conn, true
}

// Die ends the peer: the session is over. A process that was only stopped finds the message when it goes on.
func (p *Peer) Die() {
	p.send(message{kindSession})
	p.mu.Lock()
	p.dead, p.followed = true, false
	p.unlink()
	watchers := p.watchers
	p.watchers = nil
	p.mu.Unlock()
	for w := range watchers {
		w.Check()
	}
	p.set.forget(p)
}

// bury ends the peer: nobody is left who acts for the session, so its files can go.
func (p *Peer) bury() {
	p.File.Remove()
	p.Die()
}

// close ends the link when the driver is closed.
func (p *Peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlink()
}
