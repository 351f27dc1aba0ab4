package redislock_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	rule "github.com/interlock-go/interlock/driver/line"
)

// track is what a name should be like.
type track struct {
	rule.Line
	counter    int64  // when last seen
	foreign    string // the value of another program
	interfered bool   // by another program, at any time: nobody knows the order of grants any more
	unsettled  bool   // the holder's time was over, and maybe nobody has noticed
}

// settle applies the rule, and skips whom nobody reaches when they would be let in.
func (n *track) settle(h *history) {
	n.unsettled = false
	if n.foreign != "" {
		return
	}
	for again := true; again; {
		again = false
		sum := int64(0)
		for _, c := range n.Claims {
			sum += int64(c.Weight)
			if p := h.claims[c.ID]; !c.Held && sum <= int64(c.Limit) && p != nil && p.dead {
				n.Leave(c.ID)
				again = true
				break
			}
		}
	}
	_, _ = n.Settle(time.Time{}, func(stored uint64, _ time.Time) (uint64, uint64, error) { return stored + 1, stored + 1, nil })
}

func (n *track) agrees(st standing) bool {
	var held, waits []string
	for _, c := range n.Claims {
		if c.Held {
			held = append(held, c.ID)
		} else {
			waits = append(waits, c.ID)
		}
	}
	return slices.Equal(held, st.held()) && slices.Equal(waits, st.waits())
}

// rests reports whether the name is left free for a moment, to see whether another program polls
// for it. Nobody knows the order of grants any more: whoever is next holds when he comes back.
func (n *track) rests(h *history) bool {
	st := h.stage.look(h.t, n.Name)
	if st.idle() && st.records["*"] != "" {
		n.interfered = true
	}
	return n.interfered
}

// differs compares the server with the rule.
func (n *track) differs(h *history, st standing) []string {
	if n.agrees(st) {
		return nil
	}
	if n.unsettled { // somebody has noticed
		n.settle(h)
		if n.agrees(st) {
			return nil
		}
	}
	if n.rests(h) {
		return nil
	}
	return []string{fmt.Sprintf("the rule says: %+v", n.Claims)}
}

// told compares an answer with the rule.
func (h *history) told(r *rapid.T, p *place, g driver.Grant) {
	if i := p.track.Find(p.ID); !p.track.interfered && g.Held != (i >= 0 && p.track.Claims[i].Held) && !p.track.rests(h) {
		r.Fatalf("held: %v; the rule says %+v", g.Held, p.track.Claims)
	}
	if g.Held && p.Kind.Exclusive() {
		if p.fence != 0 && g.Fence != p.fence {
			r.Fatalf("token %d, and before for the same claim %d", g.Fence, p.fence)
		}
		p.fence = g.Fence
	}
}

// check looks into the server.
func (h *history) check(r *rapid.T) {
	for _, n := range h.names {
		st := h.stage.look(h.t, n.Name)
		ills := st.ill()
		highest := st.counter - st.counter%2 // of all tokens
		if highest < n.counter {
			ills = append(ills, fmt.Sprintf("the counter fell from %d", n.counter))
		}
		n.counter = highest
		if n.foreign != "" && st.value != n.foreign {
			ills = append(ills, fmt.Sprintf("another program's value was %q", n.foreign))
		}
		if !n.interfered {
			ills = append(ills, n.differs(h, st)...)
		}
		if len(ills) > 0 {
			r.Fatalf("%q\n%s", ills, st)
		}
	}
}
