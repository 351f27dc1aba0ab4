package drivertest

import (
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// tokens are those of one name in the order of their grants.
type tokens struct {
	w     *world
	name  string
	claim func(name string) driver.Claim // a claim that draws

	mu    sync.Mutex
	last  uint64
	by    string
	since string // what has happened since, for the report
}

// own returns a new claim of the name.
func (k *tokens) own() driver.Claim { return k.claim(k.name) }

// after says what happened before the next grant.
func (k *tokens) after(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.since = " and after " + fmt.Sprintf(format, args...)
}

// granted takes note of a grant while it is held, so that grants come in their order.
func (k *tokens) granted(a *actor, c driver.Claim, g driver.Grant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !c.Kind.Exclusive() {
		if g.Fence != 0 {
			k.w.fail("%s has the token %d, but only exclusive claims have tokens", k.w.trace.claim(c), g.Fence)
		}
		return
	}
	if k.w.traits.Fence == driver.NoFence {
		if g.Fence != 0 {
			k.w.fail("%s got the token %d from a store that promises none", k.w.trace.claim(c), g.Fence)
		}
		return
	}
	if g.Fence == 0 {
		k.w.fail("%s holds %s without a token", a.name, k.w.trace.claim(c))
	}
	if k.last != 0 && g.Fence < k.last+k.w.stride() {
		k.w.fail("%s holds %s with the token %d, after %s with %d%s: want at least %d", a.name, k.w.trace.claim(c), g.Fence, k.by, k.last, k.since, k.last+k.w.stride())
	}
	k.last, k.by, k.since = g.Fence, k.w.trace.label(c.ID), ""
}
