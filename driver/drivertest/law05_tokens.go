package drivertest

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

var tokensLaw = Law{
	Name: "Law05_Tokens",
	Says: "Of two exclusive claims of a name the later granted has the larger token, by Stride at least (by one, where a grant " +
		"is a single token), whoever makes them: over sessions, releases, expiries, deletion and, where tokens are durable, " +
		"restarts. A try that fails changes no token that anybody holds. " +
		"Who shares or waits has no token; a store without tokens never shows one. A counter that is kept is shown.",
	try: func(w *world) {
		all := exclusives(w)
		w.parts(
			func(w *world) {
				for _, k := range all {
					tryTokens(w, k)
				}
				tryNoTokens(w)
			},
			func(w *world) { tryTokensOverRestart(w, all) }, // before any time has passed that could repair a counter
			func(w *world) { w.eachKind(tryTokensAfterExpiry) },
		)
	},
}

// exclusives has a name for each kind that draws tokens.
func exclusives(w *world) (all []*tokens) {
	for _, k := range w.kinds() {
		if k.Exclusive() {
			all = append(all, &tokens{w: w, name: w.name("tokens-" + k.String()), claim: k.own})
		}
	}
	return all
}

func tryTokens(w *world, k *tokens) {
	a, b := w.actor("A"), w.actor("B")
	turn := func(x *actor, c driver.Claim) {
		k.granted(x, c, x.hold(c))
		x.letGo(c)
	}
	for range 4 { // over releases and sessions; the line is empty in between, so a store may have deleted it
		turn(a, k.own())
		turn(b, k.own())
	}
	for range 2 { // over the end of every session that knew the name
		x := w.actor("X")
		turn(x, k.own())
		x.close()
		x = w.actor("X") // and of one that held it
		c := k.own()
		k.granted(x, c, x.hold(c))
		x.close()
		k.after("Close of the session that held %s", w.trace.claim(c))
	}
	tryEmptyShowsToken(w, k, a, b)
	if w.traits.Mixed {
		turn(a, write(k.name)) // a mutex and a write lock of one name draw from one counter
		turn(b, mutex(k.name))
	}
	if shares := read(k.name); w.traits.Shared && (w.traits.Mixed || k.own().Kind == driver.Write) {
		a.letGo(a.held(shares)) // a reader that was there in between changes nothing
		k.after("%s was there", w.trace.claim(shares))
		turn(b, k.own())
	}
	tryWaitersTokens(w, k, a, b)
	tryTokensInTurns(w, k)
	tryFailedTries(w, k, a, b)
}

// A counter that is kept for a name while nobody stands there is shown. That it is kept is seen
// where the tokens follow each other without a gap, whatever other names draw meanwhile.
func tryEmptyShowsToken(w *world, k *tokens, a, b *actor) {
	look, ok := b.p.d.(driver.Inspector)
	if !ok || w.traits.Fence == driver.NoFence || w.traits.Single {
		return
	}
	var last uint64
	kept, shown := true, true
	for range 4 {
		c := k.own()
		g := a.hold(c)
		k.granted(a, c, g)
		kept = kept && (last == 0 || g.Fence == last+w.stride())
		last = g.Fence
		a.letGo(c)
		l, err := lookAt(w, look, k.name)
		shown = shown && (err != nil || l.Fence != 0)
		a.letGo(a.held(k.claim(w.name("tokens-other"))))
	}
	if kept && !shown {
		w.fail("the tokens of %s follow each other without a gap, so a counter is kept, but without claims the line's highest token is shown as 0", w.trace.name(k.name))
	}
}

// A token that is handed over with the lock is told once, and the same by Wait and Acquire.
func tryWaitersTokens(w *world, k *tokens, a, b *actor) {
	for i := range 4 {
		mine := k.own()
		k.granted(a, mine, a.hold(mine))
		theirs := b.queue(k.own())
		if g := b.state(theirs); g.Fence != 0 {
			w.fail("%s waits and has the token %d", w.trace.claim(theirs), g.Fence)
		}
		var g driver.Grant
		if i%2 == 0 {
			a.letGo(mine)
			g = b.await(theirs, w.atOnce())
		} else {
			k.after("its Release, while Wait was asking")
			told := w.start(func() { g = b.await(theirs, w.atOnce()) })
			w.sleep(5 * time.Millisecond)
			a.letGo(mine)
			told.wait()
		}
		k.granted(b, theirs, g)
		if again := b.state(theirs); again.Fence != g.Fence {
			w.fail("Wait told the token %d of %s and Acquire %d", g.Fence, w.trace.label(theirs.ID), again.Fence)
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
				c := queued(k.own())
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
	mine := k.own()
	g := a.hold(mine)
	k.granted(a, mine, g)
	var tries []driver.Claim
	for range 20 {
		tries = append(tries, k.own())
	}
	if w.traits.Shared && (w.traits.Mixed || mine.Kind == driver.Write) {
		tries = append(tries, read(k.name))
	}
	for _, c := range tries {
		if g := b.state(c); g.Held || g.Fence != 0 {
			w.fail("%s, which others are in the way of, was answered with held=%v and the token %d: want neither", w.trace.claim(c), g.Held, g.Fence)
		}
	}
	if again := a.state(mine); !same(again, g) {
		w.fail("%d tries that failed changed what %s answers from %s to %s", len(tries), w.trace.label(mine.ID), w.trace.grant(g, nil), w.trace.grant(again, nil))
	}
	if look, ok := b.p.d.(driver.Inspector); ok && w.traits.Fence != driver.NoFence {
		// What is stored is the highest token that anyone may use, so that a rival or a crash
		// continues above it.
		l, err := lookAt(w, look, k.name)
		if last := g.Fence + w.stride() - 1; err == nil && l.Fence != 0 && l.Fence < last {
			w.fail("the line's highest token is %d, but the holder may use up to %d", l.Fence, last)
		}
	}
	a.letGo(mine)
	next := k.own()
	k.granted(b, next, b.hold(next))
	b.letGo(next)
}

func tryNoTokens(w *world) {
	a, b := w.actor("A"), w.actor("B")
	none := func(x *actor, c driver.Claim) {
		if g := x.hold(c); g.Fence != 0 {
			w.fail("%s has the token %d, but only exclusive claims have tokens", w.trace.claim(c), g.Fence)
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

// After an expiry the next exclusive claim has a larger token than all before it: one that waited
// as well as one that finds the name free, and also where it was a reader's time that was over.
func tryTokensAfterExpiry(w *world, k kind) {
	if !w.traits.Expires || w.traits.Fence == driver.NoFence || !k.rival("").Kind.Exclusive() {
		return
	}
	try := func(waits bool) {
		x := &tokens{w: w, name: w.name("tokens-expiry-" + k.String()), claim: k.rival}
		b, dead := w.actor("B"), w.unrenewed("A", w.ttl)
		first := x.own()
		x.granted(b, first, b.hold(first))
		b.letGo(first)
		mine := k.own(x.name)
		g := dead.hold(mine)
		x.granted(dead, mine, g)
		within := dead.valid + w.traits.Grain + w.slack() + patience
		next := x.own()
		if waits {
			next = b.queue(next)
			dead.lapse()
			g = b.await(next, within)
		} else {
			dead.lapse()
			w.sleep(dead.valid)
			w.until(within, func() bool { g = b.state(next); return g.Held },
				"%s cannot be had long after the time of %s", w.trace.claim(next), w.trace.claim(mine))
		}
		x.after("the expiry of %s", w.trace.claim(mine))
		x.granted(b, next, g)
		b.letGo(next)
	}
	w.apart(func() { try(true) }, func() { try(false) })
}

func tryTokensOverRestart(w *world, all []*tokens) {
	if w.traits.Fence != driver.Durable {
		return
	}
	r, ok := w.h.(Restarter)
	if !ok {
		w.lacks("Restarter", "whether tokens grow over a restart of the store, as Traits.Fence says")
		return
	}
	w.restart(r)
	for _, k := range all {
		x, c := w.actor("Y"), k.own()
		k.after("a restart of the store")
		k.granted(x, c, x.hold(c))
		x.letGo(c)
	}
}
