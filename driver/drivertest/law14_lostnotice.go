package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var lostNoticeLaw = Law{
	Name: "Law14_LostNotice",
	Says: "A grant whose notice was lost is known by the next Renew at the latest: a Wait that is under way returns, and one " +
		"that is called afterwards answers at once.",
	try: tryLostNotice,
}

func tryLostNotice(w *world) { w.eachKind(tryUnheard) }

func tryUnheard(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	// Nobody listens while the grant comes.
	name := w.name("unheard-" + k.String())
	mine := a.held(k.rival(name))
	next := b.queue(k.own(name))
	a.letGo(mine)
	b.afterRenew(next)
	b.letGo(next)

	// Somebody listens, and a Renew that comes for another reason changes nothing for a claim that
	// is not held.
	mine = a.held(k.rival(name))
	next = b.queue(k.own(name))
	ctx, cancel := context.WithTimeout(w.ctx, 50*time.Millisecond)
	b.renew()
	if g, err := b.tryWait(ctx, next); err == nil && g.Held {
		w.fail("%s is told to be held after a Renew while %s holds", w.trace.label(next.ID), w.trace.label(mine.ID))
	}
	cancel()
	a.letGo(mine)
	b.afterRenew(next)
	b.letGo(next)

	deafen := func() (heal func()) { return func() {} }
	if df, ok := w.h.(Deafener); ok {
		deafen = func() func() {
			w.trace.add(time.Now(), "wire", "notices for B are lost from here on")
			return df.Deafen(w.t, b.p.d)
		}
	} else if w.traits.Events.Has(k.Kind) {
		w.lacks("Deafener", "whether a grant whose notice is lost is found by Renew")
	}
	for range 3 {
		mine := a.held(k.rival(name))
		next := b.queue(k.own(name))
		told := w.start(func() { b.await(next, w.atOnce()+w.slack()+time.Second) })
		w.sleep(5 * time.Millisecond)
		heal := deafen()
		a.letGo(mine)
		w.sleep(20 * time.Millisecond)
		b.renew()
		told.wait()
		b.letGo(next)

		mine = a.held(k.rival(name)) // the same, with nobody listening
		next = b.queue(k.own(name))
		a.letGo(mine)
		b.afterRenew(next)
		b.letGo(next)
		heal()
	}
}

// afterRenew renews and insists that the first Wait then says that c is held. A store may be a
// moment late in granting, so it is tried some more times, and at last with all the time that a
// slow machine may need for the answer.
func (a *actor) afterRenew(c driver.Claim) {
	w := a.w
	for within := 20 * time.Millisecond; ; within *= 2 {
		a.renew()
		ctx, cancel := context.WithTimeout(w.ctx, within)
		g, err := a.tryWait(ctx, c)
		cancel()
		if err == nil && g.Held {
			return
		}
		if within > min(w.slack(), a.valid/4) {
			w.failLate("%s has become held, and Wait does not say so after a Renew: %s", w.trace.claim(c), w.trace.answer(g, err))
		}
	}
}
