package drivertest

// A waiter that has died keeps nobody out after its time either where nobody makes room for it: who
// goes with the holder joins the holder then. Until its process has ended it may keep its place.
func tryExpiryBetween(w *world, k kind) {
	killer, ok := w.h.(Killer)
	if k.mate == nil || !ok {
		return
	}
	h, b, a := w.actor("I"), w.actor("K"), w.unrenewed("J", w.ttl)
	holds := h.held(k.own(w.name("expiry-between-" + k.String())))
	dead := a.queue(k.rival(holds.Name))
	a.kill(killer)
	next := queued(k.mate(holds.Name))
	during("and "+w.trace.claim(holds)+" is held all the while", func() {
		if !b.state(next).Held {
			b.awaitAfter(next, a.valid+w.traits.Grain+w.traits.Notice+w.slack()+patience, "the time of "+w.trace.claim(dead)+", which waited, was over")
		}
	})
	if !h.state(holds).Held {
		w.fail("%s is gone although its session was renewed: %s, which waited behind it, had expired", w.trace.claim(holds), w.trace.claim(dead))
	}
	b.letGo(next)
	h.letGo(holds)
}
