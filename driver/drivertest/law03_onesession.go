package drivertest

var oneSessionLaw = Law{
	Name: "Law03_OneSession",
	Says: "Two claims of one session exclude each other like those of two: a store that is re-entrant by session or " +
		"connection must not show through.",
	try: tryOneSession,
}

func tryOneSession(w *world) {
	for _, k := range w.kinds() { // one after the other, so that the trace is of one
		tryOneSessionOf(w, k)
	}
	trySharersOfOneSession(w)
}

func tryOneSessionOf(w *world, k kind) {
	a, b := w.actor("A"), w.actor("B")
	name := w.name("one-session-" + k.String())
	first := a.held(k.own(name))
	a.denied(k.rival(name))
	second := a.queue(k.rival(name))
	third := a.queue(k.rival(name))
	b.denied(k.rival(name))

	// A waiting claim of the same session that leaves takes nothing away from the one that holds.
	if a.release(third) {
		w.fail("%s waited, and its Release said that it had been held", w.trace.label(third.ID))
	}
	b.denied(k.rival(name))
	if !a.state(first).Held {
		w.fail("%s is gone after another claim of the same session was released", w.trace.label(first.ID))
	}
	a.letGo(first)
	a.await(second, w.atOnce())
	b.denied(k.own(name))
	a.letGo(second)
	b.letGo(b.held(k.rival(name)))

	// Two sessions of one process are no closer than two processes.
	twin := a.p.open("A2", w.ttl).keepRenewing()
	mine := a.held(k.own(name))
	twin.denied(k.rival(name))
	theirs := twin.queue(k.rival(name))
	a.letGo(mine)
	twin.await(theirs, w.atOnce())
	a.denied(k.own(name))
	twin.letGo(theirs)
}

// Of one session, too, the last that shares keeps the others out.
func trySharersOfOneSession(w *world) {
	a, b := w.actor("A"), w.actor("B")
	if w.traits.Shared {
		name := w.name("one-session-rw")
		one, two := a.held(read(name)), a.held(read(name))
		writer := a.queue(write(name))
		a.letGo(one)
		if a.state(writer).Held {
			w.fail("%s is held beside %s of the same session", w.trace.claim(writer), w.trace.claim(two))
		}
		a.letGo(two)
		a.await(writer, w.atOnce())
		a.denied(read(name))
		a.letGo(writer)
	}
	if w.traits.Counted {
		name := w.name("one-session-permits")
		one, two := a.held(permit(name, 1, 2)), a.held(permit(name, 1, 2))
		a.denied(permit(name, 1, 2))
		a.letGo(one)
		three := a.held(permit(name, 1, 2))
		b.denied(permit(name, 1, 2))
		a.letGo(two)
		a.letGo(three)
	}
}
