//go:build linux || darwin

package filelock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// because turns the loss of one claim into the loss of the session where that is the reason.
func (s *session) because(err error) error {
	if err == nil {
		return nil
	}
	if _, live := s.file.Until(); !live {
		s.end()
		err = driver.ErrSessionLost
	}
	return fmt.Errorf("filelock: %w", err)
}

// Renew implements driver.Session: one compare-and-swap, and a look at the records of the session's claims. It waits
// for nobody.
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	if err := ctx.Err(); err != nil {
		return driver.Renewal{}, fmt.Errorf("filelock: renew: %w: %w", driver.ErrNotSent, err)
	}
	desks, changes, over := s.toLookAt()
	if over {
		return driver.Renewal{}, fmt.Errorf("filelock: %w", driver.ErrSessionLost)
	}
	if s.file.Removed() {
		s.file.Revoke() // the others take a session without a file for over
	}
	if err := s.extend(s.d.st.BootClock()); err != nil {
		return driver.Renewal{}, err
	}
	whole := true
	for k := range desks {
		whole = k.look(true) == nil && whole // what cannot be read now is read next time
	}
	r := driver.Renewal{Valid: s.ttl}
	s.mu.Lock()
	if whole {
		s.seen = changes
	}
	if !s.ailing.Swap(false) {
		s.mu.Unlock()
		return r, nil
	}
	claims := make([]*claim, 0, len(s.claims))
	for _, c := range s.claims {
		claims = append(claims, c)
	}
	s.mu.Unlock()
	for _, c := range claims {
		c.k.mu.Lock()
		err, stranded := c.err, c.stranded
		c.k.mu.Unlock()
		switch {
		case stranded:
			c.k.check()
		case err != nil:
			r.Lost = append(r.Lost, driver.Loss{ID: c.id, Err: err})
		default:
			continue
		}
		s.ailing.Store(true) // until it is gone
	}
	return r, nil
}

// Few claims are looked at by every renewal. Of many, only when others have counted a change in the session's file, and
// now and then all the same, because whoever changes a record may be killed before he counts.
const (
	lookAlways = 64
	lookEvery  = 16
)

// toLookAt returns the desks that a renewal has to look at, and how many changes others had counted before.
func (s *session) toLookAt() (desks map[*desk]bool, changes uint64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	changes = s.file.Changes()
	if len(s.claims) > lookAlways && changes == s.seen && s.renewals%lookEvery != 0 {
		return nil, changes, s.over
	}
	desks = make(map[*desk]bool, len(s.claims))
	for _, c := range s.claims {
		desks[c.k] = true
	}
	return desks, changes, s.over
}

// end marks the session as over and tells everybody who waits for it.
func (s *session) end() {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over = true
	close(s.lost)
	claims := make([]*claim, 0, len(s.claims))
	for _, c := range s.claims {
		claims = append(claims, c)
	}
	s.mu.Unlock()
	for _, c := range claims {
		c.wake()
	}
}

// report says that a claim is lost, and why, to those who listen, and has Renew called.
func (s *session) report(id string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	select {
	case s.lost <- driver.Loss{ID: id, Err: why}:
	default: // nobody listens; Renew says it too
	}
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Lost implements driver.LossNotifier.
func (s *session) Lost() <-chan driver.Loss { return s.lost }

// Nudge implements driver.Nudger.
func (s *session) Nudge() <-chan struct{} { return s.nudge }
