package memlock

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// store is what all drivers on it share: the lines by name and the sessions by id, under one mutex. Nothing waits
// while holding it.
type store struct {
	personality Personality

	mu       sync.Mutex
	lines    map[string]*entry
	sessions map[string]*session
	watchers map[string][]chan struct{}
}

// entry is one line and the timer that ends the wait for a holder whose time is over. The timer runs only while
// somebody waits or watches: without them, expiry shows when the line is next looked at.
type entry struct {
	line.Line
	expiry *time.Timer
}

func newStore(p Personality) *store {
	return &store{
		personality: p, lines: map[string]*entry{}, sessions: map[string]*session{}, watchers: map[string][]chan struct{}{},
	}
}

// at returns the line of name without the claims whose time is over. Lines are never deleted, because their token
// counters must outlive their claims.
func (st *store) at(name string) *entry {
	e := st.lines[name]
	if e == nil {
		e = &entry{Line: line.Line{Name: name}}
		st.lines[name] = e
	}
	st.expire(e)
	return e
}

// until is the end of the claim's time: a claim lives from its own last Acquire or its session's last Renew.
func (st *store) until(c line.Claim) time.Time {
	s := st.sessions[c.Session]
	if s == nil {
		return time.Time{}
	}
	from := s.renewed
	if p := s.places[c.ID]; p != nil && p.acquired.After(from) {
		from = p.acquired
	}
	return from.Add(s.ttl)
}

// expire drops the claims whose time is over and settles the line.
func (st *store) expire(e *entry) {
	if st.personality.NoExpiry {
		return
	}
	now := time.Now()
	over := func(c line.Claim) bool { return !st.until(c).After(now) }
	if slices.ContainsFunc(e.Claims, over) {
		st.drop(e, over)
	}
}

// drop takes out the claims for which gone answers true, leaves word with their sessions, and settles the line.
func (st *store) drop(e *entry, gone func(line.Claim) bool) {
	for _, c := range e.Drop(gone) {
		if s := st.sessions[c.Session]; s != nil {
			s.forget(c.ID, driver.ErrGone)
		}
	}
	st.settle(e)
}

// settle applies the rule to a line that has changed, gives notice to those who now hold, and sets the timer for those
// who wait.
func (st *store) settle(e *entry) {
	granted, err := e.Settle(time.Now(), st.draw)
	if err != nil {
		panic(fmt.Sprintf("memlock: %v", err)) // this process's clock is beyond the year 2255
	}
	for _, i := range granted {
		c := e.Claims[i]
		if s := st.sessions[c.Session]; s != nil {
			s.notice(c)
		}
	}
	if st.personality.Notices == Early {
		for _, c := range e.Claims {
			if s := st.sessions[c.Session]; s != nil && !c.Held {
				s.wake(c.ID)
			}
		}
	}
	for _, w := range st.watchers[e.Name] {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	st.arm(e)
}

func (st *store) draw(stored uint64, now time.Time) (fence, reserved uint64, err error) {
	if st.personality.NoFence {
		return 0, 0, nil
	}
	return driver.Draw(stored, now)
}

// arm sets the line's timer to the first moment at which a claim's time may be over, if anybody waits or watches.
func (st *store) arm(e *entry) {
	waiting := slices.ContainsFunc(e.Claims, func(c line.Claim) bool { return !c.Held })
	watched := len(e.Claims) > 0 && len(st.watchers[e.Name]) > 0
	if !waiting && !watched || st.personality.NoExpiry {
		if e.expiry != nil {
			e.expiry.Stop()
		}
		return
	}
	first := st.until(e.Claims[0])
	for _, c := range e.Claims[1:] {
		if u := st.until(c); u.Before(first) {
			first = u
		}
	}
	if e.expiry == nil {
		e.expiry = time.AfterFunc(time.Until(first), func() {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.expire(e)
			st.arm(e) // the claim may have been renewed since the timer was set
		})
		return
	}
	e.expiry.Reset(time.Until(first))
}

func (st *store) describe(c line.Claim) driver.Holder {
	h := c.Describe()
	if s := st.sessions[c.Session]; s != nil {
		h.Owner = s.spec.Owner
	}
	if !st.personality.NoExpiry {
		h.Until = st.until(c)
	}
	return h
}
