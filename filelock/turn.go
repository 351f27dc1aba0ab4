//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// A change of a record: begin takes the name's turn and the record's lock and reads it, then the operation's line is
// changed, then commit writes it or abort does not, and both unlock the record, then endTurn.

// begin waits for its turn and for the record's lock, and reads the record. Until begin has returned nothing has
// changed, so its errors match driver.ErrNotSent.
func (n *nameState) begin(ctx context.Context) (*operation, error) {
	if !n.tryTurn() {
		select {
		case n.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("filelock: %q: %w: %w", n.name, driver.ErrNotSent, ctx.Err())
		case <-n.p.ctx.Done():
			return nil, layout.ErrClosed
		}
	}
	o, err := n.seize(ctx)
	if err != nil {
		n.endTurn()
		return nil, fmt.Errorf("filelock: %q: %w: %w", n.name, driver.ErrNotSent, unable(err))
	}
	return o, nil
}

// tryTurn takes the turn if nobody has it.
func (n *nameState) tryTurn() bool {
	select {
	case n.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

// endTurn lets the next operation of this process begin, and looks if a look was missed.
func (n *nameState) endTurn() {
	<-n.turn
	if n.missed.Load() && n.missed.Swap(false) {
		n.p.start(func() { _ = n.look(false) })
	}
}

// seize locks and reads the record. The turn is the caller's.
func (n *nameState) seize(ctx context.Context) (*operation, error) {
	for empty := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := n.use(true)
		if err != nil {
			return nil, err
		}
		if err := f.Lock(ctx, n.p.ctx, n.p.slow); err != nil {
			f.Unref()
			return nil, err
		}
		// The sweeper removes a record under its lock: who waited for that lock has the lock of a file without a name,
		// while the next one makes a new file.
		gone, err := n.lostName(f)
		if err == nil && !gone {
			var o *operation
			if o, err = n.load(f); err == nil {
				return o, nil
			}
			n.named = nil // it may have been removed because it is damaged
			gone, _ = f.Unlinked()
			if !gone && errors.Is(err, layout.ErrEmpty) && empty < layout.EmptyPatience {
				f.Unlock()
				f.Unref()
				empty++
				machine.Nap(time.Millisecond)
				continue
			}
			if !gone && errors.Is(err, layout.ErrDamaged) {
				if o, err = n.restart(f); err == nil {
					return o, nil
				}
			}
		}
		f.Unlock()
		if gone {
			n.replace(f)
			f.Unref()
			n.record = nil
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
func (n *nameState) lostName(f *layout.RecordFile) (bool, error) {
	now := n.p.st.FastClock()
	removals, known := n.p.floor.Removed()
	if known && n.named == f && n.namedRemovals == removals && now-n.namedAt < nameFresh {
		return false, nil
	}
	gone, err := f.Unlinked()
	n.named, n.namedAt, n.namedRemovals = f, now, removals
	return gone, err
}

// load reads the record in f for an operation.
func (n *nameState) load(f *layout.RecordFile) (*operation, error) {
	n.p.stats.reads.Add(1)
	r, stamp, err := f.Read(n.record, n.stamp)
	if err != nil {
		n.record = nil
		return nil, err
	}
	o := &n.op
	*o = operation{p: n.p, f: f, line: r, tell: o.tell[:0]}
	o.now, o.boot = n.p.now()
	switch {
	case r.Generation == 0:
		// A new file continues behind every generation that a removed one can have reached.
		r.Name, r.Boot, r.Generation = n.name, n.p.st.Boot, uint64(o.boot)
	case r.Name != n.name:
		return nil, fmt.Errorf("record %s is of another name, %q: want a name whose hash is another: %w", f.Path, r.Name, driver.ErrName)
	case r.Boot != n.p.st.Boot:
		r.Boot, r.Claims, r.Ends, r.Broken, r.Closed = n.p.st.Boot, nil, nil, nil, 0
	}
	n.record, n.stamp = r, stamp
	o.first = o.firstWaiting()
	if r.Closed == layout.NotYetKnown {
		return o, o.closeUntilAllKnow(n.knownHere)
	}
	return o, nil
}

// commit writes the line if it has changed, unlocks the record, and tells everybody: other processes first. The turn
// stays with the caller until endTurn.
func (n *nameState) commit(o *operation) error {
	if o.changed {
		// Others are told of a change twice, before and after it, so that a renewal which looks in between looks again.
		for _, key := range o.tell {
			if p, err := n.p.peers.Peer(key); err == nil {
				p.File.Changed()
			}
		}
		o.line.Generation++
		n.p.stats.writes.Add(1)
		full, stamp, err := o.f.Write(o.line, n.buf)
		n.buf, n.stamp = full, stamp
		if err != nil {
			n.abort(o)
			return fmt.Errorf("filelock: %q: %w", n.name, unable(err))
		}
	}
	o.f.Unlock()
	o.f.Unref()
	if o.changed {
		if f := o.firstWaiting(); f != "" && f != o.first && o.holding() > 1 {
			o.notify(o.line.Claims[o.line.Find(f)].Session) // it must watch everybody who holds
		}
		for _, key := range o.tell {
			n.p.peers.Tell(key, n.hash, n)
		}
	}
	n.observe(o.line, false)
	n.rewatch(o.line)
	return nil
}

// abort unlocks the record without writing it.
func (n *nameState) abort(o *operation) {
	n.record = nil
	o.f.Unlock()
	o.f.Unref()
}

// restart begins the line of a damaged record anew: see closed.go. The turn and the record's flock are the caller's.
func (n *nameState) restart(f *layout.RecordFile) (*operation, error) {
	if err := n.p.restart(f, n.name); err != nil {
		return nil, err
	}
	return n.load(f)
}

// knownHere reports whether a session is one of this process that cannot hold here.
func (n *nameState) knownHere(key layout.SessionKey) bool {
	return n.p.local(key) != nil && !n.holds(key)
}
