//go:build linux || darwin

package filelock

import (
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// holdings are the claims of one session, waiting and held, and the reports of their loss.
//
// A claim stands in the roll from before it is sent until after it has left its record, so that the roll of a session
// that dies names too many records and never too few.
type holdings struct {
	key   layout.SessionKey // of the session
	lost  chan driver.Loss
	nudge chan struct{} // has a token when Renew should be called soon

	ailing atomic.Bool // a claim is lost, or could not be released: Renew looks for it

	mu     sync.Mutex
	claims map[string]*claim // by ID
	roll   *layout.Roll      // what claims says, for other processes
	over   bool              // the session is
}

func newHoldings(key layout.SessionKey, roll *layout.Roll) *holdings {
	return &holdings{key: key, lost: make(chan driver.Loss, 64), nudge: make(chan struct{}, 1), claims: map[string]*claim{}, roll: roll}
}

func (h *holdings) add(c *claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims[c.id] = c
	c.slot = h.roll.Enter(filepath.Base(c.n.path))
}

func (h *holdings) remove(c *claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.claims, c.id)
	h.roll.Leave(c.slot, filepath.Base(c.n.path))
}

// claim returns a claim, nil if it is unknown, and whether the session is over.
func (h *holdings) claim(id string) (c *claim, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claims[id], h.over
}

// count returns how many claims there are, and whether the session is over.
func (h *holdings) count() (n int, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.claims), h.over
}

// all returns the claims, and whether the session is over.
func (h *holdings) all() (claims []*claim, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	claims = make([]*claim, 0, len(h.claims))
	for _, c := range h.claims {
		claims = append(claims, c)
	}
	return claims, h.over
}

// report says that a claim is lost, and why, to those who listen, and has Renew called.
func (h *holdings) report(id string, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	select {
	case h.lost <- driver.Loss{ID: id, Err: why}:
	default: // nobody listens; Renew says it too
	}
	select {
	case h.nudge <- struct{}{}:
	default:
	}
}

// end marks the session as over and wakes everybody who waits for one of its claims.
func (h *holdings) end() {
	for _, c := range h.markOver() {
		c.wake()
	}
}

// markOver marks the session as over and returns its claims, none if it was over before.
func (h *holdings) markOver() (claims []*claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil
	}
	h.over = true
	close(h.lost)
	for _, c := range h.claims {
		claims = append(claims, c)
	}
	return claims
}

// close closes the roll. Claims may still be removed.
func (h *holdings) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.roll.Close()
}
