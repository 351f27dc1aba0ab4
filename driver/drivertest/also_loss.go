package drivertest

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var lossLaw = Law{
	Name: "Also_Loss",
	Says: "A session that the store ended says so: every call fails with ErrSessionLost, Lost is closed, and its claims have been " +
		"handed over. Lost and Nudge always return the same channel.",
	try: tryLoss,
}

const notEnded = "whether a session knows that the store ended it"

func tryLoss(w *world) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	nudge, lost := a.channels()
	if n2, l2 := a.channels(); n2 != nudge || l2 != lost {
		w.fail("Lost or Nudge returned another channel when asked again")
	}
	e, ok := w.h.(Ender)
	switch _, notifies := a.s.(driver.LossNotifier); {
	case ok:
	case !notifies:
		w.excused(notEnded, "a session is no LossNotifier and the harness no Ender; if the store can end one by itself, implement that")
		return
	default:
		w.lacks("Ender", notEnded)
		return
	}
	mine := a.held(mutex(w.name("ended")))
	next := b.queue(mutex(mine.Name))
	more := map[string]driver.Claim{} // of the other kinds, by ID of what waits behind
	var behind []driver.Claim
	for _, k := range w.kinds()[1:] {
		c := a.held(k.own(w.name("ended-" + k.String())))
		behind = append(behind, b.queue(k.rival(c.Name)))
		more[behind[len(behind)-1].ID] = c
	}
	theirs := b.held(mutex(w.name("ended-waits")))
	waits := a.queue(mutex(theirs.Name))
	waiting := w.start(func() {
		for range manyTurns {
			g, err := a.tryWait(w.ctx, waits)
			switch {
			case errors.Is(err, driver.ErrSessionLost):
				return
			case err != nil || g.Held:
				w.fail("Wait in a session that the store ended answered %s: want ErrSessionLost", w.trace.answer(g, err))
			}
		}
	})
	w.sleep(5 * time.Millisecond)
	e.End(w.t, a.p.d, a.spec)
	w.trace.add(time.Now(), "store", "ends the session of A")
	b.await(next, w.atOnce())
	for _, c := range behind {
		b.awaitAfter(c, w.atOnce(), "the end of the session of "+w.trace.claim(more[c.ID]))
		b.letGo(c)
	}
	if lost != nil {
		w.closes(lost)
	}
	if _, err := a.tryRenew(w.ctx); !errors.Is(err, driver.ErrSessionLost) {
		w.fail("Renew of a session that the store ended answered %v: want ErrSessionLost", err)
	}
	if g, err := a.tryAcquire(w.ctx, mine); !errors.Is(err, driver.ErrSessionLost) {
		w.fail("Acquire in a session that the store ended answered %s: want ErrSessionLost", w.trace.answer(g, err))
	}
	if held, err := a.tryRelease(w.ctx, mine); held || err != nil && !errors.Is(err, driver.ErrSessionLost) {
		w.fail("Release in a session that the store ended answered held=%v, error %v", held, err)
	}
	waiting.wait()
	b.letGo(next)
	b.letGo(theirs)

	again := a.p.open("A2", w.long()) // the process goes on with a new session
	again.letGo(again.held(mutex(mine.Name)))
}

// closes insists that lost is closed soon, after any claims that it names.
func (w *world) closes(lost <-chan driver.Loss) {
	deadline := time.After(w.atOnce())
	for {
		select {
		case _, open := <-lost:
			if !open {
				return
			}
		case <-deadline:
			w.fail("the store ended a session and its Lost was not closed within %v", w.atOnce())
		}
	}
}
