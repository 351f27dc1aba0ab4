//go:build linux || darwin

package filelock

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/link"
)

// process is what the sessions and the names of one driver share: the store, and the sessions in it, those of this
// process and others'.
type process struct {
	*background
	st     *layout.Store
	floor  *layout.Floor
	peers  *link.Peers // the others' sessions
	logger *slog.Logger
	stats  counters
	deaf   atomic.Bool // for tests: wake-ups are lost

	ownMu sync.Mutex
	own   map[layout.SessionKey]*layout.SessionFile // this driver's sessions, until they are closed
}

type counters struct{ writes, reads atomic.Uint64 }

// local returns the file of a session of this driver, or nil.
func (p *process) local(key layout.SessionKey) *layout.SessionFile {
	p.ownMu.Lock()
	defer p.ownMu.Unlock()
	return p.own[key]
}

// setLocal makes a session one of this driver, or with nil none of it.
func (p *process) setLocal(key layout.SessionKey, f *layout.SessionFile) {
	p.ownMu.Lock()
	defer p.ownMu.Unlock()
	if f == nil {
		delete(p.own, key)
		return
	}
	p.own[key] = f
}

// session returns the file of a session, or nil if it is over.
func (p *process) session(key layout.SessionKey) *layout.SessionFile {
	if f := p.local(key); f != nil {
		return f
	}
	if peer, err := p.peers.Peer(key); err == nil {
		return peer.File
	}
	return nil
}

// over reports whether a session is over, so that its claims may be dropped: see link.Peers.Over. Of a session of this
// driver the time alone counts.
func (p *process) over(key layout.SessionKey, probe bool) bool {
	if f := p.local(key); f != nil {
		return f.Over()
	}
	return p.peers.Over(key, probe)
}

// until returns the end of a session's time, now if it is over.
func (p *process) until(key layout.SessionKey, now int64) int64 {
	if f := p.session(key); f != nil {
		if until, live := f.Until(); live {
			return until
		}
	}
	return now
}

// describe returns a claim as people see it.
func (p *process) describe(c line.Claim) driver.Holder {
	h := c.Describe()
	f := p.session(layout.SessionKey([]byte(c.Session)))
	if f == nil {
		return h
	}
	h.Owner = f.Text.Owner
	if until, live := f.Until(); live && until != layout.UnknownEnd {
		wall, boot := p.now()
		h.Until = wall.Add(time.Duration(until - boot))
	}
	return h
}

// now reads both clocks.
func (p *process) now() (wall time.Time, boot int64) { return p.st.WallClock(), p.st.FastClock() }

// slow tells the operator that a record's lock has been taken for long. Like everything that is logged here it is told by a
// goroutine of its own: a log that blocks holds up no lock.
func (p *process) slow(f *layout.RecordFile) {
	go p.logger.Warn("filelock: a record has been locked for more than a second; its lock is held for microseconds unless the process is stopped",
		"record", f.Path, "holder", f.Owner())
}

// later checks a name in a second, after something failed that may not fail then.
func (p *process) later(by link.Watcher) { p.after(time.Second, by.Check) }

// unable notes of an error that people have to deal with before it goes away.
func unable(err error) error {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EROFS} {
		if errors.Is(err, full) {
			return fmt.Errorf("%w: %w", driver.ErrUnable, err)
		}
	}
	return err
}
