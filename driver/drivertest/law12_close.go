package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var closeLaw = Law{
	Name: "Law12_Close",
	Says: "Close of a session releases what it holds and what it waits for, hands over at once, and ends it. Close of a driver " +
		"does so for all its sessions, and is back in bounded time also when its context has ended. Whatever is called then says " +
		"that it is over. A Wait that is under way holds up neither Open nor Close, and the Waits of other sessions of the driver go on.",
	try: tryClose,
}

// All sessions are of long life, so that no expiry can do what Close should.
func tryClose(w *world) {
	w.eachKind(func(w *world, k kind) {
		b, c := w.unrenewed("B", w.long()), w.unrenewed("C", w.long())
		tryHandover(w, k, b, c, "Close of the session", func(a *actor) { a.close() })
		tryHandover(w, k, b, c, "Close of the driver", func(a *actor) {
			a.p.gone = true
			if err := a.p.close(w.ctx); err != nil {
				w.fail("Close of the driver failed although nothing was wrong: %v", err)
			}
		})
	})
	tryCloseOfMany(w)
	w.eachKind(tryCloseBesideWait)
	d := w.unrenewed("D", w.long())
	d.hold(mutex(w.name("close")))
	d.p.gone = true
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	w.trace.add(time.Now(), d.name, "Close of the driver with a context that has ended")
	_ = d.p.close(ended) // all that counts is that it is back
}

func tryHandover(w *world, k kind, b, c *actor, what string, end func(*actor)) {
	a := w.unrenewed("A", w.long())
	held := w.name("close-held-" + k.String())
	mine := a.held(k.own(held))
	next := b.queue(k.rival(held))
	holds := b.held(k.rival(w.name("close-waited-" + k.String())))
	waited := a.queue(k.own(holds.Name))
	behind := c.queue(k.rival(holds.Name))
	told := w.start(func() { b.awaitAfter(next, w.atOnce(), what+" that held "+w.trace.claim(mine)) })
	w.sleep(5 * time.Millisecond) // the Wait is under way
	from := time.Now()
	end(a)
	told.wait()
	w.trace.add(from, "B", "was let in after %s", what)
	b.letGo(holds)
	c.await(behind, w.atOnce())
	c.letGo(behind)

	if g, err := a.tryAcquire(w.ctx, k.own(held)); !saysOver(err) {
		w.fail("after %s an Acquire of it was answered with %s: want an error that matches ErrSessionLost or ErrNotSent", what, w.trace.answer(g, err))
	}
	if g, err := a.tryWait(w.ctx, waited); !saysOver(err) {
		w.fail("after %s a Wait of it was answered with %s: want an error that matches ErrSessionLost or ErrNotSent", what, w.trace.answer(g, err))
	}
	if r, err := a.tryRenew(w.ctx); !saysOver(err) {
		w.fail("after %s a Renew of it was answered with %s: want an error that matches ErrSessionLost or ErrNotSent", what, answered{err, a.renewal(r, err)})
	}
	if a.p.gone { // of a session alone Close is called once
		if err := a.tryClose(); err != nil && !saysOver(err) {
			w.fail("after %s Close of the session failed: %v: want nil, or an error that matches ErrSessionLost or ErrNotSent", what, err)
		}
	}
	if g, err := a.tryAcquire(w.ctx, mine); err == nil {
		w.fail("after %s an Acquire of what it had held was answered with %s: want an error", what, w.trace.answer(g, err))
	}
	if held, err := a.tryRelease(w.ctx, mine); held {
		w.fail("after %s a Release of what it had held said held=%v, error %v", what, held, err)
	}
	if !b.state(next).Held {
		w.fail("%s is gone after the closed session released and acquired once more", w.trace.claim(next))
	}
	b.letGo(next)
	c.letGo(c.held(k.rival(held)))
}

// saysOver reports whether an error is what a call of a closed session says.
func saysOver(err error) bool {
	return errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrNotSent)
}

// Close reaches all claims of a session.
func tryCloseOfMany(w *world) {
	a, b := w.unrenewed("M", w.long()), w.unrenewed("N", w.long())
	ks := w.kinds()
	var mine []driver.Claim
	for i := range manyClaims {
		mine = append(mine, a.held(ks[i%len(ks)].own(w.name("close-many"))))
	}
	a.close()
	for i, c := range mine {
		w.until(w.atOnce(), func() bool { return b.state(ks[i%len(ks)].rival(c.Name)).Held },
			"%s, number %d of %d claims of a session that was closed, still keeps others out", w.trace.claim(c), i+1, manyClaims)
	}
}

// One session waits while another of its driver is opened, waits too, and is closed.
func tryCloseBesideWait(w *world, k kind) {
	h, a := w.unrenewed("H", w.long()), w.actor("A")
	holds := h.held(k.rival(w.name("close-beside-" + k.String())))
	waits := a.queue(k.own(holds.Name))
	told := w.start(func() {
		during("although only another session of its driver was closed", func() { a.await(waits, 2*patience) })
	})
	w.sleep(5 * time.Millisecond)
	var other *actor
	during("while a Wait of another session of its driver was under way", func() { other = a.p.open("A2", w.long()) })
	behind := other.queue(k.own(holds.Name))
	mine := other.held(k.own(w.name("close-waiting-" + k.String())))
	next := h.queue(k.rival(mine.Name))
	ctx, stop := context.WithTimeout(w.ctx, 2*patience)
	defer stop()
	ended := w.start(func() {
		for range manyTurns {
			if g, err := other.tryWait(ctx, behind); err != nil || ctx.Err() != nil {
				return
			} else if g.Held {
				w.fail("%s, whose session was closed, is told to be held while H holds the name", w.trace.claim(behind))
			}
		}
	})
	w.sleep(5 * time.Millisecond)
	from := time.Now()
	during("while a Wait of it was under way", func() {
		other.close()
		if took := time.Since(from); took > w.atOnce()+w.lateness() {
			w.failLate("Close of a session took %v", took)
		}
	})
	h.awaitAfter(next, w.atOnce(), "Close of the session that held "+w.trace.claim(mine)+", beside a Wait")
	h.letGo(next)
	stop()
	ended.wait()
	w.sleep(5 * time.Millisecond) // whatever the Close does to others is done before they are let in
	h.letGo(holds)
	told.wait()
	a.letGo(waits)
}
