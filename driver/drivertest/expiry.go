package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// lettingIn waits until next, which stands behind a claim of a that nobody renews any more, holds,
// and compares the moment with the claim's time. Started is the start of the call that renewed the
// claim last.
func (a *actor) lettingIn(gone driver.Claim, b *actor, next driver.Claim, started time.Time) {
	w := a.w
	a.lapse()
	from := time.Now()
	// A driver that tells late is asked shortly before the end, too.
	soon, cancel := context.WithDeadline(w.ctx, started.Add(a.valid*97/100))
	defer cancel()
	var g driver.Grant
	for err := error(nil); err == nil && !g.Held && soon.Err() == nil; {
		g, err = b.tryWait(soon, next)
	}
	if !g.Held {
		<-soon.Done()
		g = b.state(next)
	}
	if !g.Held {
		b.awaitAfter(next, a.valid+w.traits.Grain+w.slack()+patience, "the time of "+w.trace.claim(gone)+" was over")
	}
	held := time.Now()
	if early := started.Add(a.valid).Sub(held); early > 0 {
		w.fail("%s was let in %v before the time of %s was over: that is %v from the start of the last call that renewed it",
			w.trace.claim(next), early, w.trace.claim(gone), a.valid)
	}
	if late := held.Sub(a.renewedBy(from).Add(a.valid + w.traits.Grain + w.slack())); late > 0 {
		w.failLate("%s was let in %v too late: the time of %s, %v, was over, with %v of grain and %v for a slow machine",
			w.trace.claim(next), late, w.trace.claim(gone), a.valid, w.traits.Grain, w.slack())
	}
}
