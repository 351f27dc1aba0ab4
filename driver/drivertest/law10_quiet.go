package drivertest

import (
	"fmt"
	"time"
)

var quietLaw = Law{
	Name: "Law10_Quiet",
	Says: "Apart from Renew an idle waiter costs at most one statement per process, name and time-to-live where waiters are " +
		"told, and a free claim and a handoff stay inside the store's budget. Where waiters ask, they are seen to ask. " +
		"Nothing is asked for a session that was closed.",
	try: tryQuiet,
}

func tryQuiet(w *world) {
	c, ok := w.h.(Counter)
	if !ok {
		w.lacks("Counter", "what the driver asks of the store")
		return
	}
	var parts []func(*world)
	// One after the other: what a driver does by the clock is not to fall into all of them.
	for _, k := range w.kinds() {
		parts = append(parts, func(w *world) { tryBudget(w, c, k) })
	}
	w.parts(append(parts, func(w *world) {
		w.apart(
			func() { w.eachKind(func(w *world, k kind) { tryIdle(w, c, k) }) },
			func() { tryClosed(w, c) },
		)
	})...)
}

const (
	countedTurns = 10
	settling     = 200 * time.Millisecond // in which whatever was under way has arrived
)

func tryBudget(w *world, c Counter, k kind) {
	a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
	budget := c.Budget()
	name := w.name("quiet-" + k.String())
	began := time.Now()
	for range 2 { // the first use may load, connect and subscribe
		mine, next := a.held(k.own(name)), b.queue(k.rival(name))
		a.letGo(mine)
		b.await(next, patience)
		b.letGo(next)
		a, b = b, a
	}
	calls := func() int { return c.Calls(a.p.d) + c.Calls(b.p.d) }
	over := 0
	spent := func(what string, allowed int, of func()) {
		before := calls()
		of()
		got := calls() - before
		w.trace.add(time.Now(), "count", "%s cost %d calls of the store, the budget is %d", what, got, allowed)
		// What a driver does once a second, such as to listen for breaks or no longer for a name,
		// is no part of an operation, and falls into one now and then, of either of the two.
		if over += max(got-allowed, 0); got > allowed && over > 2*(1+int(time.Since(began)/time.Second)) {
			w.fail("%s cost %d calls of the store, the budget is %d", what, got, allowed)
		}
	}
	// settled waits until nothing was called for a while. A driver that polls never stops for long,
	// which is seen below.
	settled := func() {
		a.renewIfDue()
		b.renewIfDue()
		from := time.Now()
		for last, quiet := calls(), 0; quiet < 3 && time.Since(from) < settling; {
			w.sleep(min(3*time.Millisecond+w.lateness(), settling/3))
			now := calls()
			if quiet++; now != last {
				last, quiet = now, 0
			}
		}
	}
	for range countedTurns {
		for _, n := range []string{name, w.name("quiet-new")} {
			mine := k.own(n)
			settled() // a release may have returned while some of several servers have yet to hear of it: they say no
			spent("a free "+k.String()+" claim", budget.Acquire, func() { a.hold(mine) })
			spent("a release of a "+k.String()+" that nobody waits for", budget.Release, func() { a.letGo(mine) })
		}
	}
	mine := a.held(k.rival(name))
	for range countedTurns {
		next := b.queue(k.rival(name))
		told := w.start(func() { b.await(next, patience) })
		settled() // B's Wait is called and has done what it does first
		spent("a handoff", budget.Handoff, func() { a.letGo(mine); told.wait() })
		a, b, mine = b, a, next
	}
	a.letGo(mine)
}

// Three claims of one process wait for one name while nothing happens.
func tryIdle(w *world, c Counter, k kind) {
	h, b := w.actor("H"), w.unrenewed("W", w.ttl)
	holds := h.held(k.rival(w.name("quiet-idle-" + k.String())))
	var waiters []*task
	for range 3 {
		mine := b.queue(k.own(holds.Name))
		waiters = append(waiters, w.start(func() { b.await(mine, 10*b.valid+patience); b.letGo(mine) }))
	}
	// Until they have subscribed and looked, which a driver that polls never has.
	for last, rounds := -1, 0; c.Calls(b.p.d) != last && rounds < 5; rounds++ {
		b.renew()
		last = c.Calls(b.p.d)
		w.sleep(b.valid / 10)
	}
	count := func() (idle int) {
		b.renew()
		began := time.Now()
		w.sleep(b.valid / 10)
		before := c.Calls(b.p.d)
		w.sleep(b.valid * 4 / 10)
		middle := c.Calls(b.p.d)
		b.renew()
		renewed := c.Calls(b.p.d)
		w.sleep(b.valid * 5 / 10)
		idle = middle - before + c.Calls(b.p.d) - renewed
		w.trace.add(time.Now(), "count", "three idle waiters of one process and name cost %d calls in nine tenths of %v, apart from Renew", idle, b.valid)
		if took := time.Since(began); took > b.valid*5/4 {
			w.tooSlow(fmt.Sprintf("nine tenths of %v took %v", b.valid, took))
		}
		return idle
	}
	told, idle := w.traits.Events.Has(k.Kind), count()
	if told && idle > 1 {
		// What a driver does once, such as to listen for breaks after a while, is over now.
		idle = count()
	}
	switch {
	case told && idle > 1:
		w.fail("three idle waiters of one process and name cost %d calls in nine tenths of %v, want at most 1 where %ss are told", idle, b.valid, k)
	case !told && idle == 0:
		w.fail("idle waiters of kind %s cost nothing in nine tenths of %v: then Traits.Events should have it", k, b.valid)
	}
	b.keepRenewing()
	h.letGo(holds)
	for _, t := range waiters {
		t.wait()
	}
}

// What a closed session had asked for by the clock ends with it.
func tryClosed(w *world, c Counter) {
	a := w.unrenewed("X", w.ttl)
	for _, k := range w.kinds() {
		a.hold(k.own(w.name("quiet-closed-" + k.String())))
	}
	a.renew()
	a.close()
	w.sleep(a.valid / 10)
	before, began := c.Calls(a.p.d), time.Now()
	w.sleep(a.valid * 8 / 10)
	got, took := c.Calls(a.p.d)-before, time.Since(began)
	w.trace.add(began, "count", "a driver whose session was closed cost %d calls", got)
	if want := 1 + int(took/time.Second); got > want { // what it does once a second
		w.fail("a driver whose only session was closed made %d calls of the store in %v afterwards, want at most %d", got, took, want)
	}
}
