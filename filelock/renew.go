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
		s.holdings.end()
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
	looks, changes, over := s.toLookAt()
	if over {
		return driver.Renewal{}, fmt.Errorf("filelock: %w", driver.ErrSessionLost)
	}
	if s.file.Removed() {
		s.file.Revoke() // the others take a session without a file for over
	}
	if err := s.extend(s.p.st.BootClock()); err != nil {
		return driver.Renewal{}, err
	}
	whole := true
	for n := range looks {
		whole = n.look(true) == nil && whole // what cannot be read now is read next time
	}
	if whole {
		s.hasSeen(changes)
	}
	r := driver.Renewal{Valid: s.ttl}
	if s.holdings.ailing.Swap(false) {
		r.Lost = s.ailing()
	}
	return r, nil
}

// ailing returns the claims that are lost, and has those dropped whose release failed.
func (s *session) ailing() (lost []driver.Loss) {
	claims, _ := s.holdings.all()
	for _, c := range claims {
		stranded, err := c.n.failed(c)
		switch {
		case stranded:
			c.n.Check()
		case err != nil:
			lost = append(lost, driver.Loss{ID: c.id, Err: err})
		default:
			continue
		}
		s.holdings.ailing.Store(true) // until it is gone
	}
	return lost
}

// Few claims are looked at by every renewal. Of many, only when others have counted a change in the session's file, and
// now and then all the same, because whoever changes a record may be killed before he counts.
const (
	lookAlways = 64
	lookEvery  = 16
)

// toLookAt returns the names that a renewal has to look at, how many changes others had counted before, and whether the
// session is over.
func (s *session) toLookAt() (looks map[*nameState]bool, changes uint64, over bool) {
	many, over := s.holdings.count()
	changes = s.file.Changes()
	if !s.mustLook(many, changes) {
		return nil, changes, over
	}
	claims, _ := s.holdings.all()
	return namesOf(claims), changes, over
}

// mustLook counts a renewal and reports whether it has to look at the session's claims, which are so many.
func (s *session) mustLook(many int, changes uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	return many <= lookAlways || changes != s.seen || s.renewals%lookEvery == 0
}

// hasSeen notes that all names were looked at after others had counted so many changes.
func (s *session) hasSeen(changes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = changes
}

func namesOf(claims []*claim) map[*nameState]bool {
	ns := make(map[*nameState]bool, len(claims))
	for _, c := range claims {
		ns[c.n] = true
	}
	return ns
}

// Lost implements driver.LossNotifier.
func (s *session) Lost() <-chan driver.Loss { return s.holdings.lost }

// Nudge implements driver.Nudger.
func (s *session) Nudge() <-chan struct{} { return s.holdings.nudge }
