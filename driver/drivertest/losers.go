package drivertest

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// losers are sessions of which one may lose claims, and why none of them is to be told of others,
// by the claim's ID.
type losers struct {
	w    *world
	a    *actor
	all  []*actor
	fate map[string]string
}

// lose renews every session and insists that a is told of lost and of nothing else, and that the
// others are told of nothing.
func (x *losers) lose(after string, lost ...driver.Claim) {
	for _, of := range x.all {
		named := of.renew().Lost
		for _, l := range named {
			x.may(of, "Renew", after, l, lost)
		}
		for _, c := range lost {
			if of == x.a && !slices.ContainsFunc(named, func(l driver.Loss) bool { return l.ID == c.ID }) {
				x.w.fail("after %s Renew has named %s in Lost once, and does not name it again although nobody has released it", after, x.w.trace.claim(c))
			}
		}
	}
	x.hear(after, lost...)
}

// hear does so of the channels.
func (x *losers) hear(after string, lost ...driver.Claim) {
	w := x.w
	w.sleep(underWay)
	for _, of := range x.all {
		_, channel := of.channels()
		for more := channel != nil; more; {
			select {
			case l, open := <-channel:
				if !open {
					_, err := of.tryRenew(w.ctx)
					w.fail("after %s the channel Lost of %s is closed, and Renew answers %v: want it open while the session lives", after, of.name, err)
				}
				x.may(of, "the channel Lost", after, l, lost)
			default:
				more = false
			}
		}
	}
}

// may insists that a claim that a session is told to have lost is a's, and one of lost.
func (x *losers) may(of *actor, teller, after string, l driver.Loss, lost []driver.Claim) {
	fate, ok := x.fate[l.ID]
	if of != x.a || !ok {
		fate = "is another session's"
	} else if slices.ContainsFunc(lost, func(c driver.Claim) bool { return c.ID == l.ID }) {
		return
	}
	x.w.fail("after %s %s names a claim that %s: %s, as told to %s", after, teller, fate, x.w.trace.label(l.ID), of.name)
}
