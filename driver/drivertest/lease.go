package drivertest

import (
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// lease is what the suite knows of how long a session lives, and which of its claims are lost. It
// reads the clock and calls nothing.
type lease struct {
	mu          sync.Mutex
	until       time.Time        // when its time is over unless it is renewed
	given       time.Duration    // for how long it was opened or renewed last
	lapses      bool             // nobody is to renew it any more
	refused     bool             // the last Renew came in time and was answered with an error or without a time
	called      time.Time        // when its last call was back
	lost        map[string]error // what Renew and the channel have said to be lost, and why
	sessionLost bool
}

// begin notes that the session was opened by a call at from.
func (l *lease) begin(from time.Time, valid time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.given = from.Add(valid), valid
}

// renewed notes the answer to a Renew that was called at from.
func (l *lease) renewed(from time.Time, r driver.Renewal, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && r.Valid > 0:
		l.until, l.given, l.refused = from.Add(r.Valid), r.Valid, false
	case !errors.As(err, new(unanswered)) && time.Now().Before(l.until):
		l.refused = true
	}
	for _, loss := range r.Lost {
		l.lose(loss)
	}
	if errors.Is(err, driver.ErrSessionLost) {
		l.sessionLost = true
	}
}

// loses notes what the channel of losses has said.
func (l *lease) loses(loss driver.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(loss)
}

// lose is loses with l.mu locked.
func (l *lease) lose(loss driver.Loss) {
	if l.lost == nil {
		l.lost = map[string]error{}
	}
	l.lost[loss.ID] = loss.Err
}

// knowsLost reports whether a Renew, or the channel where somebody hears it, has said that c is
// gone, alone or with its session.
func (l *lease) knowsLost(c driver.Claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, told := l.lost[c.ID]
	return told || l.sessionLost
}

// whyLost returns the reason with which c was said to be lost, also where that is none.
func (l *lease) whyLost(c driver.Claim) (told bool, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	why, told = l.lost[c.ID]
	return told, why
}

// pace is how long after the start of a Renew the next one is due.
func (l *lease) pace() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given / 3
}

// due reports whether a Renew is due.
func (l *lease) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !time.Now().Before(l.until.Add(l.given/3 - l.given))
}

// lapse says that nobody is to renew the session any more, so that its end is no accident.
func (l *lease) lapse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lapses = true
}

// over returns for how long the session's time is over although it was to live; less than 0: it
// was not, or is not over.
func (l *lease) over() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lapses || l.refused {
		return -1
	}
	return time.Since(l.until)
}

// back notes that a call of the session has returned.
func (l *lease) back() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called = time.Now()
}

// renewedBy returns when the session was renewed at the latest, and not before from: a store with
// one liveness for all claims may renew it along with any call.
func (l *lease) renewedBy(from time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.called.After(from) {
		return l.called
	}
	return from
}
