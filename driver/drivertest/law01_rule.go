package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

var ruleLaw = Law{
	Name: "Law01_Rule",
	Says: "A claim is held when its weight and the weights of all claims ahead of it add up to at most its limit: " +
		"after every step of any history exactly those claims are held.",
	try: tryRule,
}

const (
	histories = 30
	steps     = 14
)

// family is a set of kinds that may stand in one line.
type family struct {
	name  string
	kinds []driver.Kind
}

func (w *world) families() []family {
	var f []family
	switch {
	case w.traits.Mixed && w.traits.Shared:
		f = append(f, family{"mixed", []driver.Kind{driver.Mutex, driver.Write, driver.Read, driver.Read}})
	case w.traits.Mixed:
		f = append(f, family{"mixed", []driver.Kind{driver.Mutex, driver.Write}})
	default:
		f = append(f, family{"mutex", []driver.Kind{driver.Mutex}})
	}
	if w.traits.Shared {
		f = append(f, family{"rw", []driver.Kind{driver.Write, driver.Read, driver.Read}})
	}
	if w.traits.Counted {
		f = append(f, family{"permits", []driver.Kind{driver.Permit}})
	}
	return f
}

// Three sessions, two of them in one process, take random steps; beside them the reference line
// does the same. What the reference does not grant must never be seen held, at once; what it grants
// must be seen held soon, since a store may tell its clients one after the other.
func tryRule(w *world) {
	a := w.actor("A")
	actors := []*actor{a, a.p.open("A2", w.ttl).keepRenewing(), w.actor("B")}
	families := w.families()
	for i := range histories {
		f := families[i%len(families)]
		h := &history{w: w, family: f, actors: actors, model: line.Line{Name: w.name("rule-" + f.name)}, claims: map[string]*entry{}}
		if i < len(families) {
			h.begin()
		}
		for range steps {
			h.step()
			h.compare()
		}
		h.clear()
	}
	tryKindsApart(w)
}

// history is one name, its reference, and who made which claim in it.
type history struct {
	w      *world
	family family
	actors []*actor
	model  line.Line
	claims map[string]*entry
	order  []string // the claims' IDs as they came
}

type entry struct {
	a *actor
	c driver.Claim
}

func (h *history) random() driver.Claim {
	w := h.w
	kind := h.family.kinds[w.intN(len(h.family.kinds))]
	if kind != driver.Permit {
		return h.alone(kind)
	}
	limit := 3
	if w.intN(4) == 0 {
		limit = 1 + w.intN(4) // clients need not agree on n
	}
	return permit(h.model.Name, 1+w.intN(limit), limit)
}

// alone is a claim of kind that goes with none of the family's first kind.
func (h *history) alone(kind driver.Kind) driver.Claim {
	switch kind {
	case driver.Mutex:
		return mutex(h.model.Name)
	case driver.Write:
		return write(h.model.Name)
	case driver.Read:
		return read(h.model.Name)
	default:
		return permit(h.model.Name, 3, 3)
	}
}

// begin takes the steps that chance may leave out. A try of each kind that does not fit leaves
// nothing behind that would keep the next claim out. A permit counts under its own limit, not under
// that of a permit ahead of it.
func (h *history) begin() {
	a, b := h.actors[0], h.actors[2]
	for _, kind := range h.family.kinds {
		mine, next := h.alone(h.family.kinds[0]), queued(h.alone(h.family.kinds[0]))
		h.join(a, mine)
		h.join(b, h.alone(kind))
		h.leave(mine.ID)
		h.join(a, next)
		h.compare()
		h.leave(next.ID)
	}
	if h.family.kinds[0] == driver.Permit {
		for _, limit := range []int{2, 1, 4} {
			h.join(a, queued(permit(h.model.Name, 1, limit)))
			h.compare()
		}
		h.clear()
	}
}

func (h *history) step() {
	w := h.w
	switch n := w.intN(10); {
	case n < 5 && len(h.order) < 7:
		h.join(h.actors[w.intN(len(h.actors))], queued(h.random()))
	case n < 6:
		h.join(h.actors[w.intN(len(h.actors))], h.random())
	case n < 7:
		h.actors[w.intN(len(h.actors))].renew()
	case len(h.order) > 0:
		h.leave(h.order[w.intN(len(h.order))])
	}
}

func (h *history) join(a *actor, c driver.Claim) {
	if !h.w.traits.Ordered {
		if g := a.state(c); g.Held || c.Queue {
			h.claims[c.ID] = &entry{a, c}
			h.order = append(h.order, c.ID)
		}
		return
	}
	place := line.New(a.name, c)
	fits := h.model.Fits(place)
	if !c.Queue && !fits {
		if a.state(c).Held {
			h.w.fail("%s holds %s although the weights ahead of it leave no room: %s", a.name, h.w.trace.claim(c), h.reference())
		}
		return
	}
	h.model.Join(place, time.Time{})
	h.settle()
	h.claims[c.ID] = &entry{a, c}
	h.order = append(h.order, c.ID)
	if g := a.state(c); g.Held && !fits {
		h.w.fail("%s holds %s although the weights ahead of it leave no room: %s", a.name, h.w.trace.claim(c), h.reference())
	}
}

func (h *history) leave(id string) {
	s := h.claims[id]
	_, held := h.model.Leave(id)
	h.settle()
	h.order = slices.DeleteFunc(h.order, func(other string) bool { return other == id })
	delete(h.claims, id)
	if got := s.a.release(s.c); h.w.traits.Ordered && got != held {
		h.w.fail("Release of %s said held=%v, but by the rule it was held=%v", h.w.trace.claim(s.c), got, held)
	}
}

func (h *history) settle() {
	_, err := h.model.Settle(time.Time{}, func(uint64, time.Time) (uint64, uint64, error) { return 1, 1, nil })
	if err != nil {
		panic(err) // the draw above cannot fail
	}
}

// compare looks at every claim of the line.
func (h *history) compare() {
	if !h.w.traits.Ordered {
		h.compareUnordered()
		return
	}
	for _, m := range h.model.Claims {
		s := h.claims[m.ID]
		if !m.Held {
			if s.a.state(s.c).Held {
				h.w.fail("%s holds %s although the weights ahead of it leave no room: %s", s.a.name, h.w.trace.claim(s.c), h.reference())
			}
			continue
		}
		h.w.until(h.w.atOnce(), func() bool { return s.a.state(s.c).Held },
			"%s does not hold %s although the weights ahead of it leave room: %s", s.a.name, h.w.trace.claim(s.c), h.reference())
	}
}

// compareUnordered does for a store that may grant in any order: what is held at once must be
// allowed in some order, and a line in which somebody could hold must not stand idle.
func (h *history) compareUnordered() {
	if len(h.order) == 0 {
		return
	}
	h.w.until(h.w.atOnce(), func() bool {
		var held []driver.Claim
		for _, id := range h.order {
			if s := h.claims[id]; s.a.state(s.c).Held {
				held = append(held, s.c)
			}
		}
		h.mayBeTogether(held)
		return len(held) > 0
	}, "nobody holds a line in which %d claims stand", len(h.order))
}

// The sum of weights up to each claim is at most its limit in some order only if it is so in the
// order of limits.
func (h *history) mayBeTogether(held []driver.Claim) {
	slices.SortFunc(held, func(a, b driver.Claim) int { return a.Limit - b.Limit })
	sum := 0
	for _, c := range held {
		if sum += c.Weight; sum > c.Limit {
			h.w.fail("%d claims are held together that no order allows, %s among them", len(held), h.w.trace.claim(c))
		}
	}
}

// reference tells the line as it should be.
func (h *history) reference() string {
	places := make([]string, len(h.model.Claims))
	for i, m := range h.model.Claims {
		state := "waits"
		if m.Held {
			state = "holds"
		}
		places[i] = fmt.Sprintf("%s of %s %s", h.w.trace.claim(h.claims[m.ID].c), m.Session, state)
	}
	return "by the rule the line is [" + strings.Join(places, "; ") + "]"
}

// clear has all claims leave, one after the other: each leaves as what the rule makes it, also
// where the store let it in a moment after the one before.
func (h *history) clear() {
	for len(h.order) > 0 {
		h.leave(h.order[0])
		h.compare()
	}
}

// What the traits do not promise is refused, and a refusal changes nothing.
func tryKindsApart(w *world) {
	a, b := w.actor("A"), w.actor("B")
	refused := func(c driver.Claim, why string) {
		g, err := b.tryAcquire(w.ctx, c)
		if !errors.Is(err, driver.ErrRefused) {
			w.fail("%s: %s was answered with %s, want an error that matches ErrRefused", why, w.trace.claim(c), w.trace.answer(g, err))
		}
	}
	name := w.name("kinds")
	mine := mutex(name)
	a.hold(mine)
	if w.traits.Counted {
		refused(queued(permit(name, 1, 3)), "a permit on a name that is a mutex")
	}
	if !w.traits.Mixed {
		refused(queued(write(name)), "a write lock on a name that is a mutex, in a store that does not mix kinds")
	}
	a.letGo(mine)
	b.letGo(b.held(mutex(name)))
	if w.traits.Counted { // a name is of no kind when nobody stands there
		b.letGo(b.held(permit(name, 1, 3)))
		b.letGo(b.held(mutex(name)))
	}
	if w.traits.Shared {
		b.letGo(b.held(read(name)))
		b.letGo(b.held(mutex(name)))
	}
	if !w.traits.Mixed && w.traits.Shared {
		name = w.name("kinds")
		one := read(name)
		a.hold(one)
		refused(queued(mutex(name)), "a mutex on a name that is a read/write lock, in a store that does not mix kinds")
		a.letGo(one)
	}
	if !w.traits.Shared {
		refused(queued(read(w.name("kinds"))), "a read claim in a store that has none")
	}
	if !w.traits.Counted {
		refused(queued(permit(w.name("kinds"), 1, 3)), "a permit in a store that has none")
		return
	}
	name = w.name("kinds")
	one := permit(name, 1, 3)
	a.hold(one)
	refused(queued(mutex(name)), "a mutex on a name that is a semaphore")
	a.letGo(one)
}
