//go:build linux || darwin

package filelock

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/line"
	"github.com/interlock-go/interlock/internal/mutant"
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
	key  sessionKey
	file *sessionFile

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
	probeFirst   = time.Millisecond
	probeLongest = 50 * time.Millisecond
	maxPeers     = 512 // known at most without being linked
)

// peer returns the session of key as a peer. The error matches os.ErrNotExist when the session is over.
func (d *Driver) peer(key sessionKey) (*peer, error) {
	d.mu.Lock()
	p, closed := d.peers[key], d.closed
	d.mu.Unlock()
	if p != nil {
		return p, nil
	}
	if closed {
		return nil, errClosed
	}
	f, err := d.st.openSession(key)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.peers[key]; other != nil {
		f.file.Close()
		return other, nil
	}
	if d.closed {
		f.file.Close()
		return nil, errClosed
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

// over reports whether a session is over, so that its claims may be dropped: its time has passed, its process tree has
// ended, or its file was removed. It revokes the session in the first two cases.
func (d *Driver) over(key sessionKey) bool {
	if s := d.local(key); s != nil {
		return s.file.over()
	}
	p, err := d.peer(key)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	p.mu.Lock()
	dead, linked := p.dead, p.conn != nil
	p.mu.Unlock()
	return dead || p.file.over() || !linked && p.file.orphaned()
}

// tell has the process of a session look at a line. It never waits: a message that finds the socket full is dropped,
// because then the receiver has unread ones and looks at everything when he has read them.
func (d *Driver) tell(key sessionKey, k *desk) {
	p, err := d.peer(key)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			k.check() // it died, or left, just now
		}
		return
	}
	p.file.changes().Add(1)
	d.stats.messages.Add(1)
	if !p.send(wakeUp(k.hash)) {
		p.watch(k) // nobody listens: seek the verdict, and check the line after it
	}
}

// message is a wake-up: the hash of the name to look at.
type message [1 + len(hash{})]byte

// The kinds of messages. None of them says that something is so: the receiver looks.
const (
	kindLine    = 'l' // look at the line of the hash
	kindSession = 's' // look at the word of the session
)

func wakeUp(h hash) (m message) {
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
		if mutant.On("filelock-blocking-write") {
			_, err = p.conn.Write(m[:])
		} else if werr := p.raw.Write(func(fd uintptr) bool {
			var n int
			n, err = unix.SendmsgN(int(fd), m[:], nil, nil, unix.MSG_DONTWAIT|sendFlags)
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

// link connects to the peer's socket unless nobody listens. The peer's mu is held.
func (p *peer) link() bool {
	if p.dead || p.d.ctx.Err() != nil {
		return false
	}
	path, err := p.file.socket()
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
	until, live := p.file.until()
	if !live {
		return time.Nanosecond
	}
	return min(max(time.Duration(until-p.d.st.bootClock()), 0)+time.Millisecond, linkGlance)
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
				if p.file.orphaned() {
					p.die()
					return
				}
			}
			if p.file.over() {
				p.die()
				return
			}
			continue
		}
		t.Reset(pause)
		select {
		case <-p.d.ctx.Done():
		case <-t.C:
		}
		if p.file.over() || p.file.orphaned() {
			p.die()
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

// rewatch makes sure that this process hears of the death of everybody whose leaving one of its waiting claims needs:
// each waits for the one before it, and the first that waits for all who hold. A link is made after the line was
// written or read, but what happens in between is not lost: who leaves tells those who stand in the line, and a link to
// somebody who has died is refused. The turn is the caller's.
func (k *desk) rewatch(r *record) {
	if k.waiting.Load() == 0 {
		return
	}
	for _, end := range r.ends {
		if end != k.nextEnd {
			k.nextEnd = end
			k.d.after(time.Duration(end-k.d.st.bootClock()), k.check)
		}
	}
	waiting := k.wanted(r)
	if len(waiting) == 0 {
		return
	}
	k.want = k.want[:0]
	add := func(session string) {
		if key := sessionKey([]byte(session)); !slices.Contains(k.want, key) {
			k.want = append(k.want, key)
		}
	}
	first := slices.IndexFunc(r.Claims, func(c line.Claim) bool { return !c.Held })
	for _, i := range waiting {
		session := r.Claims[i].Session
		for j := i - 1; j >= 0; j-- {
			if r.Claims[j].Session != session {
				add(r.Claims[j].Session)
				if i > first {
					break
				}
			}
			if _, waits := slices.BinarySearch(waiting, j); waits && i > first {
				break // the same session waits there, and watches for both
			}
		}
	}
	for key := range k.watching {
		if !slices.Contains(k.want, key) {
			delete(k.watching, key)
		}
	}
	for _, key := range k.want {
		p := k.watching[key]
		if p == nil {
			var err error
			if p, err = k.d.peer(key); err != nil {
				if errors.Is(err, os.ErrNotExist) {
					k.check()
				} else {
					k.d.later(k)
				}
				continue
			}
			k.watching[key] = p
		}
		if !p.watch(k) {
			delete(k.watching, key)
			k.check()
		}
	}
}

// later checks a line in a second, after something failed that may not fail then.
func (d *Driver) later(k *desk) { d.after(time.Second, k.check) }

// after calls f when pause is over, unless the driver is closed by then.
func (d *Driver) after(pause time.Duration, f func()) {
	d.start(func() {
		t := time.NewTimer(max(pause, 0))
		defer t.Stop()
		select {
		case <-d.ctx.Done():
		case <-t.C:
			f()
		}
	})
}
