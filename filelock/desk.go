//go:build linux || darwin

package filelock

import (
	"container/list"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// desk is where this process works on one name: it has the open record and knows the claims of the process's own
// sessions.
//
// Operations change the record. They take turns in this process, because a flock belongs to the open file that all
// share, and then take the flock, against other processes. Looks only read the record and take neither; the checksum
// tells them whether what they read is whole, the generation whether it is newer than what is known. Either way the
// claims learn from the record how they stand: see observe.
type desk struct {
	d    *Driver
	name string
	hash layout.Hash
	path string

	users int           // guarded by d.mu: calls under way and claims of own sessions
	place *list.Element // guarded by d.mu: in d.open while the record is open

	turn          chan struct{}  // has a token while an operation goes on
	record        *layout.Record // the last one read or written in a turn; nil if it may be wrong
	stamp         layout.Stamp
	buf           []byte
	op            operation
	watching      map[layout.SessionKey]*peer // whose deaths this desk wants to hear of
	named         *layout.RecordFile          // had its name
	namedAt       int64                       // at this time,
	namedRemovals uint64                      // after so many removals by sweepers
	want          map[layout.SessionKey]bool  // scratch of rewatch
	nextEnd       int64                       // when a broken claim stops keeping others out, as the last timer knows

	mu         sync.Mutex
	file       *layout.RecordFile
	generation uint64 // of the newest record that the claims have seen
	round      uint64
	claims     map[string]*claim // of own sessions, by ID
	waiting    atomic.Int32      // how many of them wait

	checking atomic.Bool // a check is about to begin
	missed   atomic.Bool // a look came during an operation, which may have read the record before
}

// use returns the open record; the caller lets go of it by unref.
func (k *desk) use(create bool) (*layout.RecordFile, error) {
	k.mu.Lock()
	if f := k.file; f != nil {
		f.Ref()
		k.mu.Unlock()
		return f, nil
	}
	f, err := k.d.st.OpenRecord(k.path, create)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		k.mu.Unlock()
		for _, old := range k.d.spare() {
			old.closeFile()
		}
		k.mu.Lock()
		if f := k.file; f != nil { // somebody else was faster
			f.Ref()
			k.mu.Unlock()
			return f, nil
		}
		f, err = k.d.st.OpenRecord(k.path, create)
	}
	if err != nil {
		k.mu.Unlock()
		return nil, err
	}
	f.Ref()
	k.file = f
	k.mu.Unlock()
	for _, old := range k.d.keepOpen(k) {
		old.closeFile()
	}
	return f, nil
}

// exists reports whether there is a record, as far as can be told.
func (k *desk) exists() bool {
	f, err := k.use(false)
	if err == nil {
		f.Unref()
	}
	return !errors.Is(err, os.ErrNotExist)
}

// closeFile closes the record as soon as nobody uses it.
func (k *desk) closeFile() {
	k.mu.Lock()
	f := k.file
	k.file = nil
	k.mu.Unlock()
	if f != nil {
		f.Unref()
	}
}

// replace forgets f, which lost its name.
func (k *desk) replace(f *layout.RecordFile) {
	k.mu.Lock()
	if k.file == f {
		k.file = nil
		defer f.Unref()
	}
	k.mu.Unlock()
}

func (k *desk) tryTurn() bool {
	select {
	case k.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

// endTurn lets the next operation of this process begin, and looks if a look was missed.
func (k *desk) endTurn() {
	<-k.turn
	if k.missed.Load() && k.missed.Swap(false) {
		k.d.start(func() { _ = k.look(false) })
	}
}

// look reads the record without waiting for anybody and lets the claims see it. Errors are left to those who can tell
// somebody: operations and renewals.
func (k *desk) look(surplus bool) error {
	// What to watch is decided in a turn. Who has it now may have read the record before it changed.
	mine := k.tryTurn()
	if !mine {
		k.missed.Store(true)
		mine = k.tryTurn()
	}
	if mine {
		k.missed.Store(false)
		defer k.endTurn()
	}
	for {
		before := uint64(k.d.st.BootClock())
		f, err := k.use(false)
		if errors.Is(err, os.ErrNotExist) {
			// Nobody stands in a line without a record: every claim is gone. A record made from now on is newer.
			k.observe(&layout.Record{Generation: before}, surplus)
			return nil
		}
		if err != nil {
			return err
		}
		k.d.stats.reads.Add(1)
		r, seen, err := f.Peek()
		if err != nil || !k.newer(r) { // what is newer was written by somebody who had looked for that
			if gone, gerr := f.Unlinked(); gone && gerr == nil {
				k.replace(f)
				f.Unref()
				continue
			}
		}
		f.Unref()
		if err != nil {
			return err
		}
		if r.Boot != k.d.st.Boot {
			r.Claims = nil
			mine = false
		}
		k.observe(r, surplus)
		if mine {
			k.rewatch(r)
			k.record, k.stamp = r, seen // an operation that finds this stamp need not decode it again
		}
		return nil
	}
}

// check drops the claims of the dead, and those of own sessions that nobody here knows or whose release failed, in the
// background.
func (k *desk) check() {
	if k.checking.Swap(true) {
		return // one that has not begun yet will see what this one would
	}
	k.d.start(func() {
		o, err := k.begin(k.d.ctx)
		k.checking.Store(false)
		if err != nil {
			if k.waiting.Load() > 0 {
				k.d.later(k) // unless the driver is closed
			}
			return
		}
		defer o.end()
		_, err = o.reap(everybody)
		for _, c := range slices.Clone(o.line.Claims) {
			if s := k.d.local(layout.SessionKey([]byte(c.Session))); s != nil && !k.wants(c.ID) {
				_, lerr := o.leave(c.ID)
				err = errors.Join(err, lerr)
			}
		}
		if o.unsettled() {
			err = errors.Join(err, o.settle())
		}
		if cerr := o.commit(); err != nil || cerr != nil {
			k.d.later(k)
		}
	})
}
