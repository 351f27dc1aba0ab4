//go:build linux || darwin

package filelock

import (
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// operation is one change of a line, in memory: see nameState.begin.
type operation struct {
	p       *process
	f       *layout.RecordFile // has its lock
	line    *layout.Record
	now     time.Time
	boot    int64 // the same on the boot-time clock
	changed bool
	first   string              // ID of the first claim that waited before
	tell    []layout.SessionKey // who should look at the line afterwards
}

// firstWaiting returns the ID of the first claim that waits, or "".
func (o *operation) firstWaiting() string {
	for i := range o.line.Claims {
		if !o.line.Claims[i].Held {
			return o.line.Claims[i].ID
		}
	}
	return ""
}

// settle applies the rule to a line that has changed. When it fails nobody was granted anything beyond what the line
// says.
func (o *operation) settle() error {
	o.changed = true
	if o.line.ClosedAt(o.boot) {
		return nil
	}
	granted, err := o.line.Settle(o.now, o.p.floor.Draw)
	for _, i := range granted {
		o.notify(o.line.Claims[i].Session)
	}
	return err
}

// unsettled reports whether a claim waits that could be held: there was no token for it.
func (o *operation) unsettled() bool {
	if o.line.ClosedAt(o.boot) {
		return false
	}
	sum := int64(0)
	for i := range o.line.Claims {
		c := &o.line.Claims[i]
		if sum += int64(c.Weight); !c.Held {
			return sum <= int64(c.Limit)
		}
	}
	return false
}

// notify has the process of a session look at the line after the operation. Claims of this process learn of it in any
// case.
func (o *operation) notify(session string) {
	key := layout.SessionKey([]byte(session))
	if o.p.local(key) == nil && !slices.Contains(o.tell, key) {
		o.tell = append(o.tell, key)
	}
}

// leave takes a claim out of the line and reports whether it was held.
func (o *operation) leave(id string) (held bool, err error) {
	o.line.Broken = slices.DeleteFunc(o.line.Broken, func(b string) bool {
		o.changed = o.changed || b == id
		return b == id
	})
	i := o.line.Find(id)
	if i < 0 {
		return false, nil
	}
	waited := !o.line.Claims[i].Held
	delete(o.line.Ends, id)
	_, held = o.line.Leave(id)
	err = o.settle()
	if waited && i < len(o.line.Claims) && !o.line.Claims[i].Held {
		o.notify(o.line.Claims[i].Session) // it watched the one who left, and must find another
	}
	return held, err
}

// reap drops claims whose time is over or whose owners are dead and reports whether there were any.
//
// How much it asks depends on what for. Who tries and will not wait needs to know whether those who hold are alive. Who
// will wait learns of a death from the link that he is about to make, so it is enough to look at the clock. A check asks
// for everybody, as long as there are few: a waiter is watched by the one behind it, and asked when it holds.
func (o *operation) reap(how thoroughness) (bool, error) {
	const fewEnough = 64
	all := how == everybody && len(o.line.Claims) <= fewEnough
	verdict := map[string]bool{}
	cleared := false
	for {
		// Once some are dropped others hold, who are asked in turn.
		dropped := o.line.Drop(func(c line.Claim) bool {
			if c.Broken && o.line.Ends[c.ID] <= o.p.st.BootClock() {
				return true
			}
			over, asked := verdict[c.Session]
			if !asked && (all || c.Held) {
				over = o.p.over(layout.SessionKey([]byte(c.Session)), how != byTheClock)
				verdict[c.Session] = over
			}
			return over
		})
		if len(dropped) == 0 {
			return cleared, nil
		}
		cleared = true
		for _, c := range dropped {
			if c.Broken {
				o.line.RememberBroken(c.ID)
			}
			delete(o.line.Ends, c.ID)
		}
		for _, c := range o.line.Claims {
			if !c.Held {
				o.notify(c.Session) // it may have watched one of the dropped
				break
			}
		}
		if err := o.settle(); err != nil {
			return cleared, err
		}
	}
}

// dropUnwanted drops the claims of the dead, and those of sessions of this process that wanted does not report. Whoever can
// be granted then is. What fails is left for the next time.
func (o *operation) dropUnwanted(wanted func(id string) bool) error {
	_, err := o.reap(everybody)
	for _, c := range slices.Clone(o.line.Claims) {
		if o.p.local(layout.SessionKey([]byte(c.Session))) != nil && !wanted(c.ID) {
			_, lerr := o.leave(c.ID)
			err = errors.Join(err, lerr)
		}
	}
	if o.unsettled() {
		err = errors.Join(err, o.settle())
	}
	return err
}

// thoroughness says whom reap asks for.
type thoroughness int

const (
	byTheClock thoroughness = iota // the time of those who hold
	holders                        // and whether they are alive
	everybody
)

// holding returns how many claims hold.
func (o *operation) holding() (n int) {
	for i := range o.line.Claims {
		if o.line.Claims[i].Held {
			n++
		}
	}
	return n
}
