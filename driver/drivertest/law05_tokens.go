package drivertest

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var tokensLaw = Law{
	Name: "Law05_Tokens",
	Says: "Of two exclusive claims of a name the later granted has the larger token, by Stride at least (by one, where a grant " +
		"is a single token), whoever makes them: over sessions, releases, deletion and, where tokens are durable, restarts. A " +
		"try that fails changes no token that anybody holds. " +
		"Who shares or waits has no token; a store without tokens never shows one.",
	try: func(w *world) {
		k := &tokens{w: w, name: w.name("tokens")}
		w.parts(func(*world) { tryTokens(w, k) }, func(*world) { tryTokensOverRestart(w, k) })
	},
}

// tokens are those of one name in the order of their grants.
type tokens struct {
	w    *world
	name string
	mu   sync.Mutex
	last uint64
	by   string
}

// granted takes note of a grant while it is held, so that grants come in their order.
func (k *tokens) granted(a *actor, c driver.Claim, g driver.Grant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.w.traits.Fence == driver.NoFence {
		if g.Fence != 0 {
			k.w.fail("%s got the token %d from a store that promises none", k.w.story.claim(c), g.Fence)
		}
		return
	}
	if g.Fence == 0 {
		k.w.fail("%s holds %s without a token", a.name, k.w.story.claim(c))
	}
	if k.last != 0 && g.Fence < k.last+k.w.stride() {
		k.w.fail("%s holds %s with the token %d, after %s with %d: want at least %d", a.name, k.w.story.claim(c), g.Fence, k.by, k.last, k.last+k.w.stride())
	}
	k.last, k.by = g.Fence, k.w.story.label(c.ID)
}

// stride is how many tokens a grant reserves.
func (w *world) stride() uint64 {
	if w.traits.Single {
		return 1
	}
	return driver.Stride
}

func tryTokens(w *world, k *tokens) {
	a, b := w.actor("A"), w.actor("B")
	turn := func(x *actor, c driver.Claim) {
		k.granted(x, c, x.hold(c))
		x.letGo(c)
	}
	for range 4 { // over releases and sessions; the line is empty in between, so a store may have deleted it
		turn(a, mutex(k.name))
		turn(b, mutex(k.name))
	}
	for range 2 { // over the end of every session that knew the name
		x := w.actor("X")
		turn(x, mutex(k.name))
		x.close()
	}
	if w.traits.Mixed {
		turn(a, write(k.name)) // a mutex and a write lock of one name draw from one counter
		turn(b, mutex(k.name))
	}
	tryWaitersTokens(w, k, a, b)
	tryTokensInTurns(w, k)
	tryFailedTries(w, k, a, b)
	tryNoTokens(w, a, b)
}

// A token that is handed over with the lock is told once, and the same by Wait and Acquire.
func tryWaitersTokens(w *world, k *tokens, a, b *actor) {
	for range 3 {
		mine := mutex(k.name)
		k.granted(a, mine, a.hold(mine))
		theirs := b.queue(mutex(k.name))
		if g := b.state(theirs); g.Fence != 0 {
			w.fail("%s waits and has the token %d", w.story.claim(theirs), g.Fence)
		}
		a.letGo(mine)
		g := b.await(theirs, w.atOnce())
		k.granted(b, theirs, g)
		if again := b.state(theirs); again.Fence != g.Fence {
			w.fail("Wait told the token %d of %s and Acquire %d", g.Fence, w.story.label(theirs.ID), again.Fence)
		}
		b.letGo(theirs)
	}
}

// Four processes take turns as fast as they can.
func tryTokensInTurns(w *world, k *tokens) {
	var turns []func()
	for _, name := range []string{"P", "Q", "R", "S"} {
		x := w.actor(name)
		turns = append(turns, func() {
			for range 8 {
				c := queued(mutex(k.name))
				g := x.state(c)
				if !g.Held {
					g = x.await(c, patience)
				}
				k.granted(x, c, g)
				x.letGo(c)
			}
		})
	}
	w.together(turns...)
}

// A try that fails changes no token that anybody holds.
func tryFailedTries(w *world, k *tokens, a, b *actor) {
	mine := mutex(k.name)
	g := a.hold(mine)
	k.granted(a, mine, g)
	for range 20 {
		b.denied(mutex(k.name))
	}
	if again := a.state(mine); !same(again, g) {
		w.fail("20 tries that failed changed what %s answers from %s to %s", w.story.label(mine.ID), w.story.grant(g, nil), w.story.grant(again, nil))
	}
	if look, ok := b.p.d.(driver.Inspector); ok && w.traits.Fence != driver.NoFence {
		// What is stored is the highest token that anyone may use, so that a rival or a crash continues above it.
		l, err := lookAt(w, look, k.name)
		if last := g.Fence + w.stride() - 1; err == nil && l.Fence != 0 && l.Fence < last {
			w.fail("the line's highest token is %d, but the holder may use up to %d", l.Fence, last)
		}
	}
	a.letGo(mine)
	next := mutex(k.name)
	k.granted(b, next, b.hold(next))
	b.letGo(next)
}

func tryNoTokens(w *world, a, b *actor) {
	none := func(x *actor, c driver.Claim) {
		if g := x.hold(c); g.Fence != 0 {
			w.fail("%s has the token %d, but only exclusive claims have tokens", w.story.claim(c), g.Fence)
		}
	}
	if w.traits.Shared {
		one, two := read(w.name("tokens-read")), read(w.name("tokens-read"))
		none(a, one)
		none(b, two)
		a.letGo(one)
		b.letGo(two)
	}
	if w.traits.Counted {
		one := permit(w.name("tokens-permits"), 1, 2)
		none(a, one)
		a.letGo(one)
	}
}

func tryTokensOverRestart(w *world, k *tokens) {
	if w.traits.Fence != driver.Durable {
		return
	}
	r, ok := w.h.(Restarter)
	if !ok {
		w.lacks("Restarter", "whether tokens grow over a restart of the store, as Traits.Fence says")
		return
	}
	from := time.Now()
	r.Restart(w.t)
	w.story.add(from, "store", "is restarted")
	x := w.actor("Y")
	c := mutex(k.name)
	k.granted(x, c, x.hold(c))
	x.letGo(c)
}
