package drivertest

import (
	"context"
	"fmt"
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
	tryRenewBesideWaits(w)
	tryRenewBesideStranger(w)
}

// Claims that wait, for the holder's own name and for others, hold nothing up.
func tryRenewBesideWaiters(w *world, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
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
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
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
		w.trace.add(from, "other", "is stopped while it uses %s", w.trace.name(of))
		g := caught(func() { a.renewsWithin(bound, mine, "while a stranger is stopped") })
		thaw()
		w.trace.add(time.Now(), "other", "is gone")
		if g != nil {
			panic(g)
		}
		for _, c := range all {
			if !a.state(c).Held {
				w.fail("%s is lost after a stranger was stopped", w.trace.claim(c))
			}
		}
	}
	for _, c := range all {
		a.letGo(c)
	}
}

// manyWaits is how many Waits of one session are under way: more than a pool has connections.
const manyWaits = 100

// tryRenewBesideWaits renews a session that waits for many claims of all kinds.
func tryRenewBesideWaits(w *world) {
	a, b := w.unrenewed("C", w.long()), w.unrenewed("D", w.long())
	bound := min(a.valid/3, 2*time.Second) + w.slack()
	mine := a.held(mutex(w.name("mine")))
	ks := w.kinds()
	var holds []driver.Claim
	for _, k := range ks {
		holds = append(holds, b.held(k.rival(w.name("under-way-"+k.String()))))
	}
	ctx, stop := context.WithTimeout(w.ctx, 2*patience)
	defer stop()
	var waits []*task
	for i := range manyWaits {
		c := a.queue(ks[i%len(ks)].own(holds[i%len(ks)].Name))
		waits = append(waits, w.start(func() {
			for n := 0; ctx.Err() == nil && n < manyTurns; n++ {
				_, _ = a.s.Wait(ctx, c) // is to be ended
			}
		}))
	}
	w.sleep(5 * time.Millisecond)
	during(fmt.Sprintf("while %d Waits of its session were under way", manyWaits), func() {
		a.renewsWithin(bound, mine, "meanwhile")
	})
	stop()
	for _, t := range waits {
		t.wait()
	}
	a.close()
	for _, c := range holds {
		b.letGo(c)
	}
}

func (a *actor) renewsWithin(bound time.Duration, c driver.Claim, when string) {
	from := time.Now()
	a.renewInTime(c)
	if took := time.Since(from); took > bound {
		a.w.fail("Renew took %v %s, want at most %v", took, when, bound)
	}
}
