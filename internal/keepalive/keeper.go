// Package keepalive keeps a client's session in a store alive, and ends in time what the store may
// no longer keep. It is the only heartbeat anywhere, for all claims of a session, and knows nothing
// of who waits for what: see [Claim].
package keepalive

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/fault"
)

// ReleaseTimeout bounds the wait for the store's answer to what ends: a release, a session.
const ReleaseTimeout = 2 * time.Second

// A Claim is what a session keeps alive. Its methods are called with the mutex of the line held.
type Claim interface {
	// Check ends what is over at now, and says what is left.
	Check(now clock.Instant) Left

	// Gone says that the store no longer keeps the claim, or keeps it only until it is released.
	Gone(why error)

	// Status returns the claim's name, and whether the store has said that the claim stands.
	Status() (name string, answered bool)
}

// Left is what somebody holds by a claim.
type Left struct {
	End    clock.Instant // of the first hold; Never where there is none
	Trust  clock.Instant // the first end of trust in a lease, whatever else ends it before; Never where there is no lease
	Leases int
}

// Config says what sessions are opened for.
type Config struct {
	Driver  driver.Driver
	Owner   driver.Owner
	TTL     time.Duration
	Idle    time.Duration // for which a session without claims is kept
	Clock   *clock.Clock
	Cleaner *Cleaner

	Opened  func(valid time.Duration) // is told how long the store keeps a session that was opened
	Renewed func(Renewal)             // is told of each renewal; both are called under no mutex
}

// A Keeper has the session of the claims in one line at a time: it opens one when it is asked for,
// and again after that was lost.
type Keeper struct {
	Config

	mu      *sync.Mutex   // the line's; it guards the rest, and all of its session
	Session *Session      // nil where there is none now; set here alone
	opening chan struct{} // closed when the opening under way has ended
	closed  bool

	Silence Silence
}

// NewKeeper returns a keeper that has no session yet. mu is the mutex of the line: the methods of
// sessions whose comments say so are called with it held, and so are those of claims.
func NewKeeper(c Config, mu *sync.Mutex) *Keeper { return &Keeper{Config: c, mu: mu} }

// Open returns the session, and opens one if there is none. Of several callers one opens and the
// others wait.
func (k *Keeper) Open(ctx context.Context) (*Session, error) {
	for {
		s, opening, err := k.current()
		if s != nil || err != nil {
			return s, err
		}
		if opening == nil {
			return k.open(ctx)
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// current returns the session, or what is closed when the one that is being opened is there.
// Without either the caller is to open one.
func (k *Keeper) current() (*Session, chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.Session != nil:
		return k.Session, nil, nil
	case k.closed:
		return nil, nil, fault.ErrClosed
	case k.opening != nil:
		return nil, k.opening, nil
	}
	k.opening = make(chan struct{})
	return nil, nil, nil
}

func (k *Keeper) open(ctx context.Context) (*Session, error) {
	started := k.Clock.NowSynced()
	d, err := k.Driver.Open(ctx, driver.Spec{ID: driver.NewID(), Owner: k.Owner, TTL: k.TTL})
	s, err := k.opened(d, started, err)
	if err == nil {
		k.Opened(d.Valid())
	}
	return s, err
}

// opened makes the session of what was opened, unless nobody wants it any more.
func (k *Keeper) opened(d driver.Session, started clock.Instant, err error) (*Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.opening)
	k.opening = nil
	switch {
	case err != nil:
		return nil, err
	case k.closed:
		k.Cleaner.Close(d)
		return nil, fault.ErrClosed
	}
	k.Silence.Answered(k.Clock.Now())
	k.Session = newSession(k, d, started)
	return k.Session, nil
}

// Seal opens no more sessions. The mutex is held.
func (k *Keeper) Seal() { k.closed = true }

// Close opens no more sessions, and closes the one there is in the background. The mutex is held.
func (k *Keeper) Close() {
	k.Seal()
	if k.Session != nil {
		k.Session.close()
	}
}

// Detach ends the session there is, for the caller to close, or returns nil. The mutex is held.
func (k *Keeper) Detach() *Session {
	s := k.Session
	if s != nil {
		s.stop()
	}
	return s
}
