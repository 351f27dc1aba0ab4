//go:build linux || darwin

package filelock

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// claim is a claim of a session of this process as it is known here; the truth stands in the record. n.mu guards what
// changes.
type claim struct {
	h        *holdings // of its session
	n        *nameState
	id       string
	slot     int  // in the session's roll; guarded by h.mu
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
func (n *nameState) observe(r *layout.Record, surplus bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Generation < n.generation {
		return
	}
	n.generation = r.Generation
	n.round++
	for i := range r.Claims {
		in := &r.Claims[i]
		c := n.claims[in.ID]
		if c == nil {
			if surplus && n.p.local(layout.SessionKey([]byte(in.Session))) != nil {
				n.Check()
			}
			continue
		}
		c.joined, c.round = true, n.round
		switch {
		case in.Broken:
			c.lose(driver.ErrBroken)
		case in.Held && !c.grant.Held && c.err == nil:
			c.grant = driver.Grant{Held: true, Fence: in.Fence}
			n.waiting.Add(-1)
			c.wake()
		}
	}
	for _, c := range n.claims {
		if c.joined && c.round != n.round {
			if slices.Contains(r.Broken, c.id) {
				c.lose(driver.ErrBroken)
			} else {
				c.lose(driver.ErrGone)
			}
		}
	}
}

// newer reports whether a record is newer than all that the claims have seen.
func (n *nameState) newer(r *layout.Record) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return r.Generation > n.generation
}

// wake lets Wait look at the claim again.
func (c *claim) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// lose notes that the claim is over although its owner did not release it. The name's mu is held.
func (c *claim) lose(why error) {
	if c.err != nil || c.released {
		return
	}
	if !c.grant.Held {
		c.n.waiting.Add(-1)
	}
	c.err = why
	c.h.ailing.Store(true)
	c.wake()
	c.h.report(c.id, why)
}

// enlist makes a claim known before it is sent, so that a grant which comes at once finds it. It returns the one that
// is known already.
func (n *nameState) enlist(h *holdings, id string) *claim {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.claims[id]; c != nil {
		return c
	}
	c := &claim{h: h, n: n, id: id, changed: make(chan struct{}, 1)}
	n.claims[id] = c
	n.waiting.Add(1)
	n.all.use(n)
	h.add(c)
	return c
}

// strike removes a claim that stands in no line any more.
func (n *nameState) strike(h *holdings, id string) {
	if c := n.unlist(h, id); c != nil {
		h.remove(c)
		n.all.unuse(n)
	}
}

// unlist removes a claim here, and returns it if it is known and of h.
func (n *nameState) unlist(h *holdings, id string) *claim {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.claims[id]
	if c == nil || c.h != h {
		return nil
	}
	delete(n.claims, id)
	if !c.grant.Held && c.err == nil {
		n.waiting.Add(-1)
	}
	c.released = true
	if c.err == nil {
		c.err = driver.ErrGone
	}
	c.wake()
	return c
}

// withdraw forgets a claim that did not get into the line; one that stands there, asked for again, stays.
func (n *nameState) withdraw(c *claim) {
	if !n.hasJoined(c) {
		n.strike(c.h, c.id)
	}
}

func (n *nameState) hasJoined(c *claim) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return c.joined
}

// fate reports whether a claim that is not in line has stood there before, and how it came to leave.
func (n *nameState) fate(c *claim, r *layout.Record) (joined bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
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
	return true, fmt.Errorf("filelock: %q: %w", n.name, why)
}

// releasing notes that a claim is being released, and, with stranded, that this has failed. In between nobody else may
// drop it, or its owner would hear that it was not held.
func (n *nameState) releasing(h *holdings, id string, stranded bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.claims[id]; c != nil && c.h == h {
		c.released, c.stranded = true, stranded
		if stranded {
			h.ailing.Store(true)
		}
	}
}

// state returns how a claim stands.
func (n *nameState) state(c *claim) (driver.Grant, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return c.grant, c.err
}

// wanted returns the claims of the line, by index, that wait and are known here and not released.
func (n *nameState) wanted(r *layout.Record) (indexes []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range r.Claims {
		if in := &r.Claims[i]; !in.Held {
			if c := n.claims[in.ID]; c != nil && !c.released {
				indexes = append(indexes, i)
			}
		}
	}
	return indexes
}

// wants reports whether a claim is known here and not stranded.
func (n *nameState) wants(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.claims[id]
	return c != nil && !c.stranded
}

// holds reports whether a session of this process may hold here, by the holdings of its claims.
func (n *nameState) holds(key layout.SessionKey) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.claims {
		if c.h.key == key && c.joined {
			return true
		}
	}
	return false
}

// failed returns why a claim is over although its owner has not released it, and whether its release has failed.
func (n *nameState) failed(c *claim) (stranded bool, lost error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return c.stranded, c.err
}
