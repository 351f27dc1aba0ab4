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
	a, b := w.still("A", w.long()), w.still("B", w.long())
	bound := min(a.valid/3, 2*time.Second) + w.slack()
	name := w.name("stranger")
	mine := a.held(mutex(w.name("mine")))

	// Claims that wait, for the holder's own name and for others, hold nothing up.
	theirs := b.held(mutex(name))
	waits := a.queue(mutex(name))
	b.queue(mutex(mine.Name))
	told := w.start(func() { a.await(waits, a.valid) })
	w.sleep(5 * time.Millisecond) // a Wait is under way
	a.renewsWithin(bound, mine, "while claims wait")
	b.letGo(theirs)
	told.wait()
	a.letGo(waits)

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
		if !a.state(mine).Held {
			w.fail("%s is lost after a stranger was stopped", w.story.claim(mine))
		}
	}
	a.letGo(mine)
}

func (a *actor) renewsWithin(bound time.Duration, c driver.Claim, when string) {
	from := time.Now()
	a.renewInTime(c)
	if took := time.Since(from); took > bound {
		a.w.fail("Renew took %v %s, want at most %v", took, when, bound)
	}
}
