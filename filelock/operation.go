//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// operation is one change of a line: begin, then changes of line, then commit or abort, then end.
type operation struct {
	k       *desk
	f       *layout.RecordFile
	line    *layout.Record
	now     time.Time
	boot    int64
	changed bool
	first   string              // ID of the first claim that waited before
	tell    []layout.SessionKey // who should look at the line afterwards
}

// begin waits for its turn and for the record's lock, and reads the record. Until begin has returned nothing has
// changed, so its errors match driver.ErrNotSent.
func (k *desk) begin(ctx context.Context) (*operation, error) {
	if !k.tryTurn() {
		select {
		case k.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("filelock: %q: %w: %w", k.name, driver.ErrNotSent, ctx.Err())
		case <-k.d.ctx.Done():
			return nil, layout.ErrClosed
		}
	}
	o, err := k.seize(ctx)
	if err != nil {
		k.endTurn()
		return nil, fmt.Errorf("filelock: %q: %w: %w", k.name, driver.ErrNotSent, unable(err))
	}
	return o, nil
}

// seize locks and reads the record. The turn is the caller's.
func (k *desk) seize(ctx context.Context) (*operation, error) {
	for empty := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := k.use(true)
		if err != nil {
			return nil, err
		}
		if err := f.Lock(ctx, k.d.ctx, k.d.slow); err != nil {
			f.Unref()
			return nil, err
		}
		// The sweeper removes a record under its lock: who waited for that lock has the lock of a file without a name,
		// while the next one makes a new file.
		gone, err := k.lostName(f)
		if err == nil && !gone {
			var o *operation
			if o, err = k.load(f); err == nil {
				return o, nil
			}
			k.named = nil // it may have been removed because it is damaged
			gone, _ = f.Unlinked()
			if !gone && errors.Is(err, layout.ErrEmpty) && empty < layout.EmptyPatience {
				f.Unlock()
				f.Unref()
				empty++
				machine.Nap(time.Millisecond)
				continue
			}
			if !gone && errors.Is(err, layout.ErrDamaged) {
				if o, err = k.begins(f); err == nil {
					return o, nil
				}
			}
		}
		f.Unlock()
		if gone {
			k.replace(f)
			f.Unref()
			k.record = nil
			continue
		}
		f.Unref()
		return nil, err
	}
}

// nameFresh is for how long the name of a file is believed in, as long as no sweeper has removed any record. It is
// there for people who remove files by hand.
const nameFresh = int64(time.Millisecond)

// lostName reports whether the record in f, whose flock is had, has lost its name.
func (k *desk) lostName(f *layout.RecordFile) (bool, error) {
	now := k.d.st.FastClock()
	removals, known := k.d.floor.Removed()
	if known && k.named == f && k.namedRemovals == removals && now-k.namedAt < nameFresh {
		return false, nil
	}
	gone, err := f.Unlinked()
	k.named, k.namedAt, k.namedRemovals = f, now, removals
	return gone, err
}

// load reads the record in f for an operation.
func (k *desk) load(f *layout.RecordFile) (*operation, error) {
	k.d.stats.reads.Add(1)
	r, stamp, err := f.Read(k.record, k.stamp)
	if err != nil {
		k.record = nil
		return nil, err
	}
	o := &k.op
	*o = operation{k: k, f: f, line: r, tell: o.tell[:0]}
	o.now, o.boot = k.d.now()
	switch {
	case r.Generation == 0:
		// A new file continues behind every generation that a removed one can have reached.
		r.Name, r.Boot, r.Generation = k.name, k.d.st.Boot, uint64(o.boot)
	case r.Name != k.name:
		return nil, fmt.Errorf("record %s is of another name, %q: want a name whose hash is another: %w", f.Path, r.Name, driver.ErrName)
	case r.Boot != k.d.st.Boot:
		r.Boot, r.Claims, r.Ends, r.Broken, r.Closed = k.d.st.Boot, nil, nil, nil, 0
	}
	k.record, k.stamp = r, stamp
	o.first = o.firstWaiting()
	if r.Closed == layout.NotYetKnown {
		return o, o.closeUntilAllKnow()
	}
	return o, nil
}

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
	granted, err := o.line.Settle(o.now, o.k.d.floor.Draw)
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
	if o.k.d.local(key) == nil && !slices.Contains(o.tell, key) {
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
			if c.Broken && o.line.Ends[c.ID] <= o.k.d.st.BootClock() {
				return true
			}
			over, asked := verdict[c.Session]
			if !asked && (all || c.Held) {
				over = o.k.d.over(layout.SessionKey([]byte(c.Session)), how != byTheClock)
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

// thoroughness says whom reap asks for.
type thoroughness int

const (
	byTheClock thoroughness = iota // the time of those who hold
	holders                        // and whether they are alive
	everybody
)

// commit writes the line if it has changed, unlocks the record, and tells everybody: other processes first. The turn
// stays with the caller until end.
func (o *operation) commit() error {
	k := o.k
	if o.changed {
		// Others are told of a change twice, before and after it, so that a renewal which looks in between looks again.
		for _, key := range o.tell {
			if p, err := k.d.peer(key); err == nil {
				p.file.Changed()
			}
		}
		o.line.Generation++
		k.d.stats.writes.Add(1)
		full, stamp, err := o.f.Write(o.line, k.buf)
		k.buf, k.stamp = full, stamp
		if err != nil {
			o.abort()
			return fmt.Errorf("filelock: %q: %w", k.name, unable(err))
		}
	}
	o.f.Unlock()
	o.f.Unref()
	if o.changed {
		if f := o.firstWaiting(); f != "" && f != o.first && o.holding() > 1 {
			o.notify(o.line.Claims[o.line.Find(f)].Session) // it must watch everybody who holds
		}
		for _, key := range o.tell {
			k.d.tell(key, k)
		}
	}
	k.observe(o.line, false)
	k.rewatch(o.line)
	return nil
}

// holding returns how many claims hold.
func (o *operation) holding() (n int) {
	for i := range o.line.Claims {
		if o.line.Claims[i].Held {
			n++
		}
	}
	return n
}

// abort unlocks the record without writing it.
func (o *operation) abort() {
	o.k.record = nil
	o.f.Unlock()
	o.f.Unref()
}

// end lets the next operation of this process begin.
func (o *operation) end() { o.k.endTurn() }

// unable notes of an error that people have to deal with before it goes away.
func unable(err error) error {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EROFS} {
		if errors.Is(err, full) {
			return fmt.Errorf("%w: %w", driver.ErrUnable, err)
		}
	}
	return err
}
