package drivertest

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

var renewBoundedLaw = Law{
	Name: "Law16_RenewBounded",
	Says: "Renew never queues behind claims or behind another process's writes: it returns in bounded time while any other " +
		"process is stopped at any instruction, and no claim is lost meanwhile.",
	try: tryRenewBounded,
}

const freezes = 12

func tryRenewBounded(w *world) {
	w.eachKind(tryRenewBesideWaiters)
	tryRenewBesideStranger(w)
}

// Claims that wait, for the holder's own name and for others, hold nothing up.
func tryRenewBesideWaiters(w *world, k kind) {
	a, b := w.still("A", w.long()), w.still("B", w.long())
	mine, theirs := a.held(k.own(w.name("mine-"+k.String()))), b.held(k.rival(w.name("theirs-"+k.String())))
	waits := a.queue(k.own(theirs.Name))
	behind := b.queue(k.rival(mine.Name))
	told := w.start(func() { a.await(waits, a.valid) })
	w.sleep(5 * time.Millisecond) // a Wait is under way
	a.renewsWithin(min(a.valid/3, 2*time.Second)+w.slack(), mine, "while claims wait")
	b.letGo(theirs)
	told.wait()
	a.letGo(waits)
	b.release(behind)
	a.letGo(mine)
}

func tryRenewBesideStranger(w *world) {
	a, b := w.still("A", w.long()), w.still("B", w.long())
	bound := min(a.valid/3, 2*time.Second) + w.slack()
	name := w.name("stranger")
	var all []driver.Claim
	for _, k := range w.kinds() {
		all = append(all, a.held(k.own(w.name("mine-"+k.String()))))
	}
	mine := all[0]
	b.queue(mutex(mine.Name)) // somebody waits meanwhile

	f, ok := w.h.(Freezer)
	if !ok {
		w.lacks("Freezer", "whether Renew returns while a stranger is stopped in the middle of a write")
		return
	}
	for i := range freezes {
		of := name
		if i%2 == 1 {
			of = mine.Name // the stranger tries what is held here
		}
		from := time.Now()
		thaw := f.Freeze(w.t, of)
		w.story.add(from, "other", "is stopped while it uses %s", w.story.name(of))
		g := caught(func() { a.renewsWithin(bound, mine, "while a stranger is stopped") })
		thaw()
		w.story.add(time.Now(), "other", "is gone")
		if g != nil {
			panic(g)
		}
		for _, c := range all {
			if !a.state(c).Held {
				w.fail("%s is lost after a stranger was stopped", w.story.claim(c))
			}
		}
	}
	for _, c := range all {
		a.letGo(c)
	}
}

func (a *actor) renewsWithin(bound time.Duration, c driver.Claim, when string) {
	from := time.Now()
	a.renewInTime(c)
	if took := time.Since(from); took > bound {
		a.w.fail("Renew took %v %s, want at most %v", took, when, bound)
	}
}
