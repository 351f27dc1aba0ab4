package cli

import (
	"bytes"
	"context"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// tap is a driver that watches the requests made through it: run needs the files that its command
// must inherit, and must not be stopped by Ctrl-Z in the middle of a request, where it could hold
// up others.
type tap struct {
	driver.Driver

	// at is read-locked during each request. It is locked while this process is stopped, if that
	// came about in time.
	at     sync.RWMutex
	locked bool

	mu    sync.Mutex
	last  driver.Session
	owner []byte // of last
}

// Open implements driver.Driver.
func (t *tap) Open(ctx context.Context, s driver.Spec) (driver.Session, error) {
	t.at.RLock()
	defer t.at.RUnlock()
	session, err := t.Driver.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.last, t.owner = session, s.Owner.Encode()
	t.mu.Unlock()
	return &tappedSession{session, t}, nil
}

// inherit returns the files of the session that was opened last: run has one claim, and so one
// session.
func (t *tap) inherit() []*os.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.last.(driver.Inheritor); ok {
		return i.Inherit()
	}
	return nil
}

// owns reports whether a claim is of the session that was opened last.
func (t *tap) owns(h driver.Holder) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Equal(h.Owner.Encode(), t.owner)
}

// Lock implements sync.Locker for guard.StopSelf: it waits until no request is under way. A store
// that does not answer must not keep a person waiting who pressed Ctrl-Z, so it waits for a moment
// only.
func (t *tap) Lock() {
	const most, step = 100 * time.Millisecond, time.Millisecond
	for end := time.Now().Add(most); ; <-time.NewTimer(step).C {
		if t.locked = t.at.TryLock(); t.locked || time.Now().After(end) {
			return
		}
	}
}

// Unlock implements sync.Locker.
func (t *tap) Unlock() {
	if t.locked {
		t.at.Unlock()
	}
}

// tappedSession forwards the calls that one claim needs. A wait is no request here: while it lasts
// no other client is held up.
type tappedSession struct {
	driver.Session
	tap *tap
}

// Acquire implements driver.Session.
func (s *tappedSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s.tap.at.RLock()
	defer s.tap.at.RUnlock()
	return s.Session.Acquire(ctx, c)
}

// Release implements driver.Session.
func (s *tappedSession) Release(ctx context.Context, c driver.Claim) (bool, error) {
	s.tap.at.RLock()
	defer s.tap.at.RUnlock()
	return s.Session.Release(ctx, c)
}

// Renew implements driver.Session.
func (s *tappedSession) Renew(ctx context.Context) (driver.Renewal, error) {
	s.tap.at.RLock()
	defer s.tap.at.RUnlock()
	return s.Session.Renew(ctx)
}

// Lost implements driver.LossNotifier; it yields nothing where the store does not notify.
func (s *tappedSession) Lost() <-chan driver.Loss {
	if n, ok := s.Session.(driver.LossNotifier); ok {
		return n.Lost()
	}
	return nil
}

// Nudge implements driver.Nudger; it yields nothing where nobody nudges.
func (s *tappedSession) Nudge() <-chan struct{} {
	if n, ok := s.Session.(driver.Nudger); ok {
		return n.Nudge()
	}
	return nil
}

// renewals is an interlock.Tracer that says when the end of trust may have moved. It is called with
// locks held, so it sends on a channel and never blocks.
type renewals chan struct{}

// WaitStart implements interlock.Tracer.
func (r renewals) WaitStart(ctx context.Context, _ interlock.WaitStart) context.Context { return ctx }

// WaitEnd implements interlock.Tracer.
func (r renewals) WaitEnd(context.Context, interlock.WaitEnd) {}

// HoldEnd implements interlock.Tracer.
func (r renewals) HoldEnd(context.Context, interlock.HoldEnd) {}

// Renewed implements interlock.Tracer.
func (r renewals) Renewed(_ context.Context, d interlock.Renewed) {
	if d.Err != nil {
		return
	}
	select {
	case r <- struct{}{}:
	default:
	}
}
