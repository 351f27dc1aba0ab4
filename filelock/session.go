//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/link"
)

// session is one liveness: a file with a word, a lock on it, a socket.
type session struct {
	p        *process
	names    *names
	key      layout.SessionKey
	name     string // the key, as records have it
	ttl      time.Duration
	file     *layout.SessionFile
	lock     *os.File // holds the flock that the owner's process tree inherits
	sock     *layout.Listener
	inbox    *link.Inbox
	holdings *holdings
	closed   func(*session) // is told when the session is closed

	mu       sync.Mutex
	renewals uint64
	seen     uint64 // changes that others had counted when all records were looked at last
}

// newSession makes a session: the socket first, so that whoever finds the file can connect. It is served by its inbox, and
// closed by discard.
func newSession(p *process, ns *names, spec driver.Spec, closed func(*session)) (_ *session, err error) {
	var undo []func()
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			undo[i]()
		}
	}()
	key := layout.HashOf(spec.ID)
	sock, err := p.st.Listen(key.String() + layout.SocketSuffix)
	if err != nil {
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("a session of this id was opened before, want a new id: %w", driver.ErrRefused)
		}
		return nil, err
	}
	undo = append(undo, func() { sock.Close(); os.Remove(sock.Path) })
	roll, err := p.st.CreateRoll(key)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { roll.Close(); os.Remove(p.st.RollPath(key)) })
	text := layout.SessionText{Owner: driver.DecodeOwner(spec.Owner.Encode())}
	if !sock.InStore {
		text.Socket = sock.Path
	}
	file, lock, err := p.st.CreateSession(key, text, spec.TTL, uint64(p.st.BootClock()+int64(spec.TTL)))
	if err != nil {
		return nil, err
	}
	s := &session{
		p: p, names: ns, key: key, name: string(key[:]), ttl: spec.TTL, file: file, lock: lock, sock: sock,
		holdings: newHoldings(key, roll), closed: closed,
	}
	s.inbox = link.NewInbox(p.ctx, sock, p.start, receiver{s})
	p.setLocal(key, file)
	return s, nil
}

// Valid implements driver.Session. All processes read the same clock, so nothing is taken off.
func (s *session) Valid() time.Duration { return s.ttl }

// extend moves the end of the session's time, and ends the session if it is too late for that.
func (s *session) extend(now int64) error {
	if s.file.Extend(now + int64(s.ttl)) {
		return nil
	}
	s.holdings.end()
	return fmt.Errorf("filelock: %w", driver.ErrSessionLost)
}

// Acquire implements driver.Session: one operation on the record. A claim that cannot be held has the line cleared of
// the dead before it is refused or waits.
func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	grant, _, err := s.requeue(ctx, nil, c)
	return grant, err
}

// Requeue implements driver.Requeuer: both steps are one operation.
func (s *session) Requeue(ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
	if old.Name != next.Name {
		return driver.Grant{}, false, fmt.Errorf("filelock: requeue from %q to %q: want one name: %w", old.Name, next.Name, driver.ErrRefused)
	}
	return s.requeue(ctx, &old, next)
}

func (s *session) requeue(ctx context.Context, old *driver.Claim, c driver.Claim) (grant driver.Grant, held bool, err error) {
	n, err := s.names.get(c.Name)
	if err != nil {
		return driver.Grant{}, false, err
	}
	defer s.names.put(n)
	mine := n.enlist(s.holdings, c.ID)
	if old != nil {
		n.releasing(s.holdings, old.ID, false)
		defer func() {
			if err != nil {
				n.releasing(s.holdings, old.ID, true)
			}
		}()
	}
	o, err := n.begin(ctx)
	if err != nil {
		n.withdraw(mine)
		return driver.Grant{}, false, err
	}
	defer n.endTurn()
	if old != nil {
		held, err = o.leave(old.ID)
	}
	if err == nil {
		grant, err = s.enter(n, o, mine, c)
	}
	if err != nil {
		n.abort(o)
		n.withdraw(mine)
		return driver.Grant{}, false, err
	}
	if err = n.commit(o); err != nil {
		return driver.Grant{}, false, err
	}
	if old != nil {
		n.strike(s.holdings, old.ID)
	}
	if i := o.line.Find(c.ID); i >= 0 {
		if c := &o.line.Claims[i]; c.Held || old != nil {
			return driver.Grant{Held: c.Held, Fence: c.Fence}, held, nil // who is in the way would cost more than it is worth
		} else if o.line.Closed != 0 {
			return driver.Grant{}, held, nil // nobody knows who
		}
		return o.line.Grant(i, s.p.describe), held, nil
	}
	n.withdraw(mine)
	return grant, held, nil
}

// enter puts c into the line, or finds it there.
func (s *session) enter(n *nameState, o *operation, mine *claim, c driver.Claim) (driver.Grant, error) {
	// Who enters renews. It is done here and not before, because the wait for the record may have been long; from here
	// on nobody can drop the claim for Valid.
	if err := s.extend(o.boot); err != nil {
		return driver.Grant{}, err
	}
	if i := o.line.Find(c.ID); i >= 0 {
		if o.line.Claims[i].Broken {
			return driver.Grant{}, fmt.Errorf("filelock: %q: %w", c.Name, driver.ErrBroken)
		}
		return driver.Grant{}, nil
	}
	if joined, err := n.fate(mine, o.line); joined {
		return driver.Grant{}, err
	}
	wanted := line.New(s.name, c)
	wanted.Note = cut(c.Note, maxNote)
	for {
		refused := o.line.Admits(wanted)
		if refused == nil && o.line.Fits(wanted) && (c.Queue || !o.line.ClosedAt(o.boot)) {
			break
		}
		how := holders
		switch {
		case refused != nil:
			how = everybody
		case c.Queue:
			how = byTheClock
		}
		if cleared, err := o.reap(how); err != nil {
			return driver.Grant{}, err
		} else if cleared {
			continue
		}
		if refused != nil {
			return driver.Grant{}, fmt.Errorf("filelock: %w", refused)
		}
		if !c.Queue {
			return o.line.Denied(s.p.describe), nil
		}
		break
	}
	o.line.Join(wanted, o.now)
	return driver.Grant{}, o.settle()
}

// maxNote is how many bytes of a note are kept.
const maxNote = 1024

// cut returns the first n bytes of s or, not to break a character, some fewer.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// Wait implements driver.Session: what others change comes as a wake-up, and Renew finds what did not.
func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	mine, over := s.holdings.claim(c.ID)
	for mine != nil && !over {
		grant, err := mine.n.state(mine)
		if err != nil || grant.Held {
			return grant, s.because(err)
		}
		select {
		case <-ctx.Done():
			return driver.Grant{}, ctx.Err()
		case <-mine.changed:
		}
		_, over = s.holdings.claim(c.ID)
	}
	if over {
		return driver.Grant{}, fmt.Errorf("filelock: %w", driver.ErrSessionLost)
	}
	return driver.Grant{}, fmt.Errorf("filelock: %q: %w", c.Name, driver.ErrGone)
}

// Release implements driver.Session: one operation on the record.
func (s *session) Release(ctx context.Context, c driver.Claim) (bool, error) {
	n, err := s.names.get(c.Name)
	if err != nil {
		return false, err
	}
	defer s.names.put(n)
	n.releasing(s.holdings, c.ID, false)
	if !n.exists() {
		n.strike(s.holdings, c.ID) // the record was removed, and the line with it
		return false, nil
	}
	o, err := n.begin(ctx)
	if err != nil {
		n.releasing(s.holdings, c.ID, true)
		return false, err
	}
	defer n.endTurn()
	_, live := s.file.Until() // a session whose time has passed without anybody noticing still kept everybody out
	held, err := o.leave(c.ID)
	if err != nil {
		// The next one cannot have a token now. The claim leaves all the same, and the line is looked at again.
		go s.p.logger.Warn("filelock: the next holder cannot be let in", "name", c.Name, "error", err)
		s.p.later(n)
	}
	if err := n.commit(o); err != nil {
		n.releasing(s.holdings, c.ID, true)
		return false, err
	}
	n.strike(s.holdings, c.ID)
	return held && live, nil
}

// Close implements driver.Session: every claim leaves its line, then the session's files go. A line that cannot be had
// before ctx ends is left to others, who find the session revoked.
func (s *session) Close(ctx context.Context) error {
	claims, _ := s.holdings.all()
	for _, c := range claims {
		if _, err := s.Release(ctx, driver.Claim{Name: c.n.name, ID: c.id}); err != nil {
			go s.p.logger.Debug("filelock: a claim of a closed session is left to others", "name", c.n.name, "error", err)
		}
	}
	s.holdings.end()
	s.discard()
	return nil
}

// discard closes and removes what the session is made of.
func (s *session) discard() {
	s.file.Revoke()
	s.p.setLocal(s.key, nil)
	s.closed(s)
	s.inbox.Close()
	s.file.Remove()
	os.Remove(s.sock.Path)
	s.lock.Close()
	s.file.File.Close()
	s.holdings.close()
}

// Inherit implements driver.Inheritor: the open file that holds the session's lock.
func (s *session) Inherit() []*os.File { return []*os.File{s.lock} }

var _ interface {
	driver.Session
	driver.Requeuer
	driver.LossNotifier
	driver.Nudger
	driver.Inheritor
} = (*session)(nil)
