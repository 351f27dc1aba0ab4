// Package line is the one rule behind every lock, as pure code: the line of claims of one name.
//
// A claim is held when its weight and the weights of all claims ahead of it add up to at most its limit. Claims join at
// the end and leave from anywhere, so once a claim is held it stays held until it leaves: what is ahead of it can only
// become less.
//
// A driver that keeps a whole line in one place, such as a row, a document or a file, reads the [Line], changes it here,
// and writes it back in one atomic step:
//
//	package main
//
//	import (
//		"fmt"
//		"log"
//		"time"
//
//		"github.com/interlock-go/interlock/driver"
//		"github.com/interlock-go/interlock/driver/line"
//	)
//
//	// arrive puts a claim at the end of the line, or finds it there, and returns its state.
//	func arrive(l *line.Line, session string, c driver.Claim, now time.Time) (driver.Grant, error) {
//		if l.Find(c.ID) < 0 {
//			mine := line.New(session, c)
//			if err := l.Admits(mine); err != nil {
//				return driver.Grant{}, err
//			}
//			if !c.Queue && !l.Fits(mine) {
//				return l.Denied(line.Claim.Describe), nil
//			}
//			l.Join(mine, now)
//			if _, err := l.Settle(now, driver.Draw); err != nil {
//				return driver.Grant{}, err
//			}
//		}
//		return l.Grant(l.Find(c.ID), line.Claim.Describe), nil
//	}
//
//	func main() {
//		now := time.Unix(1_700_000_000, 0) // the store's clock
//		l := &line.Line{Name: "coupons/42"}
//		for _, id := range []string{"ann", "bob"} {
//			c := driver.Claim{Name: l.Name, ID: id, Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
//			g, err := arrive(l, "session of "+id, c, now)
//			if err != nil {
//				log.Fatal(err)
//			}
//			fmt.Println(id, "holds:", g.Held)
//		}
//		l.Leave("ann")
//		granted, err := l.Settle(now, driver.Draw)
//		if err != nil {
//			log.Fatal(err)
//		}
//		for _, i := range granted {
//			fmt.Println(l.Claims[i].ID, "is next") // the one to wake
//		}
//	}
//
// It prints
//
//	ann holds: true
//	bob holds: false
//	bob is next
//
// The package knows no clock, no store and no wire: when a claim's time is over, who is told, and how a line is written
// down are the driver's. Times are passed in, those of the store's clock where it has one, and are only kept for people,
// except that they seed the tokens. memlock keeps Lines in memory, filelock encodes them into records, and the conformance
// suite compares every other store with them: the reference is what runs in production.
package line

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Line is the line of one name. Its zero value with a Name is an empty one. It is not safe for concurrent use.
//
// The fields are there to be written down and read back. Fence must outlive the claims: a line without any is not to be
// deleted unless the store's clock, which seeds the tokens, never steps back.
type Line struct {
	Name   string
	Fence  uint64  // the highest token that anyone may have used
	Claims []Claim // in order of arrival
}

// Claim is one place in a line.
type Claim struct {
	Session       string // whose it is, by driver.Spec.ID; a secret
	ID            string // as in driver.Claim; a secret
	Kind          driver.Kind
	Weight, Limit int
	Note          string
	Passes        int

	Held   bool
	Broken bool      // an operator took it away; it keeps others out until it leaves or its session's time is over
	Since  time.Time // when it was granted, or when it joined while it waits, for people
	Fence  uint64    // the lowest of its tokens, for an exclusive claim that is held
}

// New returns the place that c of a session takes, for [Line.Join].
func New(session string, c driver.Claim) Claim {
	return Claim{
		Session: session, ID: c.ID, Kind: c.Kind, Weight: c.Weight, Limit: c.Limit, Note: c.Note, Passes: c.Passes,
	}
}

// Find returns the index of the claim id, or -1.
func (l *Line) Find(id string) int {
	return slices.IndexFunc(l.Claims, func(c Claim) bool { return c.ID == id })
}

// Fits reports whether c would be held if it joined now. Waiting claims count, so it overtakes nobody.
func (l *Line) Fits(c Claim) bool {
	sum := int64(c.Weight)
	for _, ahead := range l.Claims {
		sum += int64(ahead.Weight)
	}
	return sum <= int64(c.Limit)
}

// Admits returns an error that matches driver.ErrRefused, mostly as driver.ErrName, if c cannot stand in this line at all: permits share no
// name with locks, because a semaphore that a mutex can block is neither.
func (l *Line) Admits(c Claim) error {
	if c.Weight < 1 || c.Limit < c.Weight || c.Limit > driver.All {
		return fmt.Errorf("a claim of weight %d under limit %d: want 1 ≤ weight ≤ limit ≤ %d: %w", c.Weight, c.Limit, driver.All, driver.ErrRefused)
	}
	for _, other := range l.Claims {
		if (other.Kind == driver.Permit) != (c.Kind == driver.Permit) {
			return fmt.Errorf("%q is in use as a %s, so it cannot be a %s: use another name: %w", l.Name, other.Kind, c.Kind, driver.ErrName)
		}
	}
	return nil
}

// Join puts c at the end of the line. The caller has looked with [Line.Find] and [Line.Admits], and calls
// [Line.Settle] afterwards.
func (l *Line) Join(c Claim, now time.Time) {
	c.Held, c.Broken, c.Fence, c.Since = false, false, 0, now
	l.Claims = append(l.Claims, c)
}

// JoinFirst puts c before everybody who waits: what a store without order may do at worst.
func (l *Line) JoinFirst(c Claim, now time.Time) {
	c.Held, c.Broken, c.Fence, c.Since = false, false, 0, now
	at := len(l.Claims)
	for at > 0 && !l.Claims[at-1].Held {
		at--
	}
	l.Claims = slices.Insert(l.Claims, at, c)
}

// Leave takes the claim id out of the line and reports whether it was there, and held and not broken. The caller calls
// [Line.Settle] afterwards.
func (l *Line) Leave(id string) (found, held bool) {
	i := l.Find(id)
	if i < 0 {
		return false, false
	}
	held = l.Claims[i].Held && !l.Claims[i].Broken
	l.Claims = slices.Delete(l.Claims, i, i+1)
	return true, held
}

// Drop takes out every claim for which gone answers true, such as those whose time is over, and returns them in order. The
// caller calls [Line.Settle] afterwards.
func (l *Line) Drop(gone func(Claim) bool) []Claim {
	var dropped []Claim
	l.Claims = slices.DeleteFunc(l.Claims, func(c Claim) bool {
		if gone(c) {
			dropped = append(dropped, c)
			return true
		}
		return false
	})
	return dropped
}

// Settle applies the rule after a change: it grants what can be held now, draws tokens for the exclusive ones from
// draw, which is [driver.Draw] in most stores, and returns the indexes of the newly granted claims. When draw fails the
// claim and all behind it go on waiting, and its error is returned beside what was granted before.
func (l *Line) Settle(now time.Time, draw func(stored uint64, now time.Time) (fence, reserved uint64, err error)) (granted []int, err error) {
	sum := int64(0)
	for i := range l.Claims {
		c := &l.Claims[i]
		sum += int64(c.Weight)
		if c.Held || sum > int64(c.Limit) {
			continue
		}
		if c.Kind.Exclusive() {
			fence, reserved, err := draw(l.Fence, now)
			if err != nil {
				return granted, err
			}
			c.Fence, l.Fence = fence, reserved
		}
		c.Held, c.Since = true, now
		granted = append(granted, i)
	}
	return granted, nil
}

// Grant returns the state of the claim at index i as the contract tells it, with the first holder in its way as describe
// tells people of it: [Claim.Describe], with Owner and Until where they are known. A broken claim is told as held.
func (l *Line) Grant(i int, describe func(Claim) driver.Holder) driver.Grant {
	c := l.Claims[i]
	if c.Held {
		return driver.Grant{Held: true, Fence: c.Fence}
	}
	return driver.Grant{Holder: l.inWay(describe)}
}

// Denied returns the answer to a claim that may not queue and does not fit.
func (l *Line) Denied(describe func(Claim) driver.Holder) driver.Grant {
	return driver.Grant{Holder: l.inWay(describe)}
}

// inWay describes the first claim of the line, which is always a held one.
func (l *Line) inWay(describe func(Claim) driver.Holder) *driver.Holder {
	if len(l.Claims) == 0 {
		return nil
	}
	h := describe(l.Claims[0])
	return &h
}

// Break takes the claim of a public id and token away from its owner: a waiting one and, with now, a held one leaves at
// once, and the caller calls [Line.Settle]; otherwise it is marked. It returns the claim as it was, or an error that matches
// driver.ErrRefused.
func (l *Line) Break(publicID string, fence uint64, now bool) (Claim, error) {
	for i, c := range l.Claims {
		if driver.PublicID(c.ID) != publicID {
			continue
		}
		if c.Fence != fence {
			return Claim{}, fmt.Errorf("claim %s of %q has the token %d, not %d: it is not the claim you saw: %w", publicID, l.Name, c.Fence, fence, driver.ErrRefused)
		}
		if now || !c.Held {
			l.Claims = slices.Delete(l.Claims, i, i+1)
		} else {
			l.Claims[i].Broken = true
		}
		return c, nil
	}
	return Claim{}, fmt.Errorf("no claim %s stands in the line of %q: it has left: %w", publicID, l.Name, driver.ErrRefused)
}

// Describe returns c as people see it. The caller adds Owner and Until.
func (c Claim) Describe() driver.Holder {
	return driver.Holder{
		PublicID: driver.PublicID(c.ID), Kind: c.Kind, Weight: c.Weight, Limit: c.Limit, Held: c.Held, Broken: c.Broken,
		Note: c.Note, Since: c.Since, Fence: c.Fence, Passes: c.Passes,
	}
}
