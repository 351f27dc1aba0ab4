package memlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// Lose takes the name away from whoever holds it over any driver of this store, as an operator or a failing store
// would, and returns when the holders' lease contexts have ended. The next is let in when they have released or their
// grace is over. It needs clients of package interlock on the other side; when nobody holds the name it does nothing.
func (d *Driver) Lose(name string) {
	d.store.mu.Lock()
	type loss struct {
		s  *session
		id string
	}
	var losses []loss
	e := d.store.at(name)
	for i, c := range e.Claims {
		if s := d.store.sessions[c.Session]; s != nil && c.Held {
			e.Claims[i].Broken = true
			s.forget(c.ID, driver.ErrGone)
			losses = append(losses, loss{s, c.ID})
		}
	}
	d.store.mu.Unlock()
	for _, l := range losses {
		// A client handles a loss before it receives the next: when the empty one is taken, the context has ended.
		l.s.tell(driver.Loss{ID: l.id, Err: driver.ErrGone})
		l.s.tell(driver.Loss{})
	}
}

// tell sends a loss and returns when it was received, the session is over, or nobody can believe in it any more: a
// client that could not close its session has stopped listening.
func (s *session) tell(l driver.Loss) {
	s.losing <- struct{}{}
	defer func() { <-s.losing }()
	select {
	case <-s.done:
		return
	default:
	}
	over := time.NewTimer(s.ttl)
	defer over.Stop()
	select {
	case s.lost <- l:
	case <-s.done:
	case <-over.C:
	}
}

// Forget empties the line of name at once and without notice, as a deleted key or a lost row does: the next claim is
// granted while the old holder has yet to hear of it at its next renewal. The token counter stays.
func (d *Driver) Forget(name string) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.drop(d.store.at(name), func(line.Claim) bool { return true })
}

// EndSessions ends the sessions opened by this driver, as the store would after the death of their process: their
// claims are gone at once.
func (d *Driver) EndSessions() {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for _, s := range d.store.sessions {
		if s.driver == d {
			s.end()
		}
	}
}

// Stall cuts this driver off in both directions until resume is called: requests do not arrive, and calls return only
// when their context ends. Time goes on at the store.
func (d *Driver) Stall() (resume func()) { return d.wire.hold(&d.wire.requests, &d.wire.replies) }

// StallReplies lets requests through and holds the answers, until resume is called: the store does what it is asked,
// and nobody hears of it.
func (d *Driver) StallReplies() (resume func()) { return d.wire.hold(&d.wire.replies) }

// Fail makes every call of this driver return err, before it reaches the store, until Fail(nil).
func (d *Driver) Fail(err error) {
	d.wire.mu.Lock()
	defer d.wire.mu.Unlock()
	d.wire.failure = err
}

// Calls returns how many requests this driver has made.
func (d *Driver) Calls() int {
	d.wire.mu.Lock()
	defer d.wire.mu.Unlock()
	return d.wire.calls
}
