package redislock_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
)

// place is a claim and whose it is.
type place struct {
	driver.Claim
	number int // in order of time
	of     *actor
	track  *track
	fence  uint64
	dead   bool
}

func (h *history) actor(r *rapid.T) *actor { return h.actors[rapid.IntRange(0, 2).Draw(r, "actor")] }

// draw draws a claim for a name: mostly of a kind that goes with it.
func (h *history) draw(r *rapid.T, queue bool) (*track, driver.Claim) {
	i := rapid.IntRange(0, 1).Draw(r, "name")
	kind := rapid.SampledFrom([]driver.Kind{driver.Mutex, driver.Read, driver.Read, driver.Write}).Draw(r, "kind")
	if (i == 1) != (rapid.IntRange(0, 19).Draw(r, "misfit") == 0) {
		kind = driver.Permit
	}
	return h.names[i], h.claim(r, h.names[i].Name, kind, queue)
}

func (h *history) claim(r *rapid.T, name string, kind driver.Kind, queue bool) driver.Claim {
	c := driver.Claim{Name: name, ID: driver.NewID(), Kind: kind, Weight: 1, Limit: driver.All, Queue: queue}
	switch kind {
	case driver.Mutex, driver.Write:
		c.Weight = driver.All
	case driver.Permit:
		c.Limit = rapid.IntRange(1, 5).Draw(r, "limit")
		c.Weight = rapid.IntRange(1, c.Limit).Draw(r, "weight")
	}
	return c
}

// some draws one of the claims of a living actor.
func (h *history) some(r *rapid.T) *place {
	var all []*place
	for _, p := range h.claims {
		if !p.dead {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		r.Skip("nobody stands anywhere")
	}
	slices.SortFunc(all, func(a, b *place) int { return a.number - b.number })
	return all[rapid.IntRange(0, len(all)-1).Draw(r, "claim")]
}

// add adds a claim that nobody has released.
func (h *history) add(p *place) *place {
	h.number++
	p.number = h.number
	h.claims[p.ID] = p
	return p
}
