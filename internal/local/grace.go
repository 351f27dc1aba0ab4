package local

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/keepalive"
)

// LongestGrace is the longest grace of a lease whose session is kept for valid. A grant is worth
// something while a grace of trust is left, so the store has a third of the time to answer.
func LongestGrace(valid time.Duration) time.Duration { return valid / 3 }

// LongestGiven is the longest grace with a session that the store keeps for valid: always a little
// less than its TTL.
func LongestGiven(valid time.Duration) time.Duration { return valid / 5 * 2 }

// NoSuchGrace is the error of a lock with a longer one.
func NoSuchGrace(valid time.Duration) error {
	return fmt.Errorf("the store keeps a session for %v, so there is no grace above two fifths of that: %w", valid, errors.ErrUnsupported)
}

// checkGrace fails waiters with a grace that s cannot give: the store may keep sessions for less
// than it was asked for. It looks at all, since any of them may come to be first, with a claim that
// was made for another. A grace that is a default is shortened instead. A renewal that came late
// may be good for less: that passes with the next one, and rejects nobody.
func (l *line) checkGrace(s *keepalive.Session) {
	longest := LongestGiven(max(s.Valid, s.Driver.Valid()))
	if w := l.waiters.first; w == nil || w.Grace <= longest {
		return
	}
	for w := l.waiters.first; w != nil; w = w.next {
		if w.AnyGrace {
			w.Grace = min(w.Grace, LongestGrace(s.Valid))
		}
	}
	l.reject(NoSuchGrace(s.Valid), func(w *waiter) bool { return w.Grace > longest })
	l.settle()
}
