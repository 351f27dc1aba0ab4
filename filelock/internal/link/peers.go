//go:build linux || darwin

package link

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// Peers are the sessions of other processes that this process knows. It is safe for concurrent use.
type Peers struct {
	Sent atomic.Uint64 // messages

	ctx   context.Context //nolint:containedctx // of all that goes on in the background; ends when the driver is closed
	start func(func())
	st    *layout.Store

	mu     sync.Mutex // taken after a peer's mu
	closed bool
	byKey  map[layout.SessionKey]*Peer
}

// NewPeers returns an empty set of the peers in st. What it does in the background is run by start, and ends with ctx.
func NewPeers(ctx context.Context, st *layout.Store, start func(func())) *Peers {
	return &Peers{ctx: ctx, start: start, st: st, byKey: map[layout.SessionKey]*Peer{}}
}

// maxPeers is how many sessions are known at most without a link to them.
const maxPeers = 512

// Peer returns the session of key. The error matches os.ErrNotExist when the session is over.
func (ps *Peers) Peer(key layout.SessionKey) (*Peer, error) {
	ps.mu.Lock()
	p, closed := ps.byKey[key], ps.closed
	ps.mu.Unlock()
	if p != nil {
		return p, nil
	}
	if closed {
		return nil, layout.ErrClosed
	}
	f, err := ps.st.OpenSession(key)
	if err != nil {
		return nil, err
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if other := ps.byKey[key]; other != nil {
		f.File.Close()
		return other, nil
	}
	if ps.closed {
		f.File.Close()
		return nil, layout.ErrClosed
	}
	p = &Peer{File: f, set: ps, key: key, watchers: map[Watcher]bool{}, used: time.Now()}
	ps.byKey[key] = p
	if len(ps.byKey) > maxPeers {
		for key, old := range ps.byKey {
			// Not the usual order of locks, so it may only be tried; who is busy is not idle.
			if old != p && old.mu.TryLock() {
				if !old.followed && len(old.watchers) == 0 {
					delete(ps.byKey, key)
				}
				old.mu.Unlock()
			}
		}
	}
	return p, nil
}

// Over reports whether a session is over, so that its claims may be dropped: its time has passed, its file was removed,
// or, with probe, its process tree has ended. It revokes the session unless that was the file.
func (ps *Peers) Over(key layout.SessionKey, probe bool) bool {
	p, err := ps.Peer(key)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	p.mu.Lock()
	dead, linked := p.dead, p.conn != nil
	p.mu.Unlock()
	return dead || p.File.Over() || probe && !linked && p.File.Orphaned()
}

// Tell has the process of a session look at the line of a record's hash, which w watches. It never waits: a message that
// finds the socket full is dropped, because then the receiver has unread ones and looks at everything when he has read
// them. If the session is over, or nobody listens, w is checked.
func (ps *Peers) Tell(key layout.SessionKey, record layout.Hash, w Watcher) {
	p, err := ps.Peer(key)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			w.Check() // it died, or left, just now
		}
		return
	}
	p.File.Changed()
	ps.Sent.Add(1)
	if !p.send(wakeUp(record)) {
		p.Watch(w) // nobody listens: seek the verdict, and check the line after it
	}
}

// forget removes a peer; whoever needs it again opens its file again.
func (ps *Peers) forget(p *Peer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byKey[p.key] == p {
		delete(ps.byKey, p.key)
	}
}

// Close ends all links. No peer is known from then on.
func (ps *Peers) Close() {
	ps.mu.Lock()
	ps.closed = true
	var all []*Peer
	for _, p := range ps.byKey {
		all = append(all, p)
	}
	ps.mu.Unlock()
	for _, p := range all {
		p.close()
	}
}
