//go:build linux || darwin

package filelock

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// claim is a claim of a session of this process as it is known here; the truth stands in the record. Guarded by the
// desk's mu.
type claim struct {
	s        *session
	k        *desk
	id       string
	slot     int  // in the session's roll; guarded by the session's mu
	joined   bool // it stands in the record, or stood there
	released bool // its owner is releasing it, so it is not lost if it is gone
	stranded bool // the release failed: it is to be dropped
	grant    driver.Grant
	err      error         // why it is over although its owner has not released it
	round    uint64        // the last observation that saw it
	changed  chan struct{} // has a token while Wait should look again
}

// observe lets the claims of this process see a record. It only moves them forward: an older record than the newest
// that they have seen says nothing, and a claim that is not in it although it has never stood in one is about to join.
// With surplus it also looks for claims that stand in the record for sessions of this process although nobody here
// knows them, and has them dropped.
func (k *desk) observe(r *layout.Record, surplus bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Generation < k.generation {
		return
	}
	k.generation = r.Generation
	k.round++
	for i := range r.Claims {
		in := &r.Claims[i]
		c := k.claims[in.ID]
		if c == nil {
			if surplus && k.d.local(layout.SessionKey([]byte(in.Session))) != nil {
				k.check()
			}
			continue
		}
		c.joined, c.round = true, k.round
		switch {
		case in.Broken:
			c.lose(driver.ErrBroken)
		case in.Held && !c.grant.Held && c.err == nil:
			c.grant = driver.Grant{Held: true, Fence: in.Fence}
			k.waiting.Add(-1)
			c.wake()
		}
	}
	for _, c := range k.claims {
		if c.joined && c.round != k.round {
			if slices.Contains(r.Broken, c.id) {
				c.lose(driver.ErrBroken)
			} else {
				c.lose(driver.ErrGone)
			}
		}
	}
}

// newer reports whether a record is newer than all that the claims have seen.
func (k *desk) newer(r *layout.Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.Generation > k.generation
}

// wake lets Wait look at the claim again.
func (c *claim) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// lose notes that the claim is over although its owner did not release it. The desk's mu is held.
func (c *claim) lose(why error) {
	if c.err != nil || c.released {
		return
	}
	if !c.grant.Held {
		c.k.waiting.Add(-1)
	}
	c.err = why
	c.s.ailing.Store(true)
	c.wake()
	c.s.report(c.id, why)
}

// enlist makes a claim known before it is sent, so that a grant which comes at once finds it. It returns the one that
// is known already.
func (k *desk) enlist(s *session, id string) *claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.claims[id]; c != nil {
		return c
	}
	c := &claim{s: s, k: k, id: id, changed: make(chan struct{}, 1)}
	k.claims[id] = c
	k.waiting.Add(1)
	k.d.mu.Lock()
	k.users++
	k.d.mu.Unlock()
	s.mu.Lock()
	s.claims[id] = c
	c.slot = s.roll.Enter(filepath.Base(k.path))
	s.mu.Unlock()
	return c
}

// strike removes a claim that stands in no line any more.
func (k *desk) strike(s *session, id string) {
	k.mu.Lock()
	c := k.claims[id]
	if c == nil || c.s != s {
		k.mu.Unlock()
		return
	}
	delete(k.claims, id)
	if !c.grant.Held && c.err == nil {
		k.waiting.Add(-1)
	}
	c.released = true
	if c.err == nil {
		c.err = driver.ErrGone
	}
	c.wake()
	k.mu.Unlock()
	s.mu.Lock()
	delete(s.claims, id)
	s.roll.Leave(c.slot, filepath.Base(k.path))
	s.mu.Unlock()
	k.d.unuse(k)
}

// withdraw forgets a claim that did not get into the line; one that stands there, asked for again, stays.
func (k *desk) withdraw(c *claim) {
	k.mu.Lock()
	joined := c.joined
	k.mu.Unlock()
	if !joined {
		k.strike(c.s, c.id)
	}
}

// fate reports whether a claim that is not in line has stood there before, and how it came to leave.
func (k *desk) fate(c *claim, r *layout.Record) (joined bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !c.joined {
		return false, nil
	}
	why := c.err
	if why == nil {
		why = driver.ErrGone
		if slices.Contains(r.Broken, c.id) {
			why = driver.ErrBroken
		}
	}
	return true, fmt.Errorf("filelock: %q: %w", k.name, why)
}

// release notes that a claim is being released, and, with stranded, that this has failed. In between nobody else may
// drop it, or its owner would hear that it was not held.
func (k *desk) release(s *session, id string, stranded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.claims[id]; c != nil && c.s == s {
		c.released, c.stranded = true, stranded
		if stranded {
			s.ailing.Store(true)
		}
	}
}

// state returns how a claim stands.
func (k *desk) state(c *claim) (driver.Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.grant, c.err
}

// wanted returns the claims of the line, by index, that wait and are known here and not released.
func (k *desk) wanted(r *layout.Record) (indexes []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range r.Claims {
		if in := &r.Claims[i]; !in.Held {
			if c := k.claims[in.ID]; c != nil && !c.released {
				indexes = append(indexes, i)
			}
		}
	}
	return indexes
}

// wants reports whether a claim is known here and not stranded.
func (k *desk) wants(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.claims[id]
	return c != nil && !c.stranded
}
