//go:build linux || darwin

package filelock

import (
	"container/list"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// nameState is what this process has of one name: the open record, and the claims of the process's own sessions.
//
// Operations change the record. They take turns in this process, because a flock belongs to the open file that all
// share, and then take the flock, against other processes. Looks only read the record and take neither; the checksum
// tells them whether what they read is whole, the generation whether it is newer than what is known. Either way the
// claims learn from the record how they stand: see observe.
type nameState struct {
	p    *process
	all  *names
	name string
	hash layout.Hash
	path string

	users int           // guarded by all.mu: calls under way and claims of own sessions
	place *list.Element // guarded by all.mu: in all.open while the record is open

	turn          chan struct{}  // has a token while an operation goes on, which guards:
	record        *layout.Record // the last one read or written in a turn; nil if it may be wrong
	stamp         layout.Stamp
	buf           []byte
	op            operation
	watch         watch
	named         *layout.RecordFile // had its name
	namedAt       int64              // at this time of the boot-time clock,
	namedRemovals uint64             // after so many removals by sweepers

	mu         sync.Mutex
	file       *layout.RecordFile
	generation uint64 // of the newest record that the claims have seen
	round      uint64
	claims     map[string]*claim // of own sessions, by ID
	waiting    atomic.Int32      // how many of them wait

	checking atomic.Bool // a check is about to begin
	missed   atomic.Bool // a look came during an operation, which may have read the record before
}

func newNameState(p *process, all *names, name string) *nameState {
	h := layout.HashOf(name)
	n := &nameState{
		p: p, all: all, name: name, hash: h, path: p.st.RecordPath(name, h),
		turn: make(chan struct{}, 1), claims: map[string]*claim{},
	}
	n.watch = newWatch(p, n)
	return n
}

// use returns the open record; the caller lets go of it by Unref.
func (n *nameState) use(create bool) (*layout.RecordFile, error) {
	f, opened, err := n.openFile(create)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		for _, old := range n.all.spare() {
			old.closeFile()
		}
		f, opened, err = n.openFile(create)
	}
	if opened {
		for _, old := range n.all.keepOpen(n) {
			old.closeFile()
		}
	}
	return f, err
}

// openFile returns the open record, and whether it was opened for that.
func (n *nameState) openFile(create bool) (f *layout.RecordFile, opened bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file != nil {
		n.file.Ref()
		return n.file, false, nil
	}
	if f, err = n.p.st.OpenRecord(n.path, create); err != nil {
		return nil, false, err
	}
	f.Ref()
	n.file = f
	return f, true, nil
}

// exists reports whether there is a record, as far as can be told.
func (n *nameState) exists() bool {
	f, err := n.use(false)
	if err == nil {
		f.Unref()
	}
	return !errors.Is(err, os.ErrNotExist)
}

// closeFile closes the record as soon as nobody uses it.
func (n *nameState) closeFile() { n.closeThis(nil) }

// replace closes f, which has lost its name, if it is the open record.
func (n *nameState) replace(f *layout.RecordFile) { n.closeThis(f) }

// closeThis closes the open record, if there is one and it is f or f is nil, as soon as nobody uses it.
func (n *nameState) closeThis(f *layout.RecordFile) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file != nil && (f == nil || n.file == f) {
		defer n.file.Unref()
		n.file = nil
	}
}

// look reads the record without waiting for anybody and lets the claims see it. Errors are left to those who can tell
// somebody: operations and renewals.
func (n *nameState) look(surplus bool) error {
	// What to watch is decided in a turn. Who has it now may have read the record before it changed.
	mine := n.tryTurn()
	if !mine {
		n.missed.Store(true)
		mine = n.tryTurn()
	}
	if mine {
		n.missed.Store(false)
		defer n.endTurn()
	}
	for {
		before := uint64(n.p.st.BootClock())
		f, err := n.use(false)
		if errors.Is(err, os.ErrNotExist) {
			// Nobody stands in a line without a record: every claim is gone. A record made from now on is newer.
			n.observe(&layout.Record{Generation: before}, surplus)
			return nil
		}
		if err != nil {
			return err
		}
		n.p.stats.reads.Add(1)
		r, seen, err := f.Peek()
		if err != nil || !n.newer(r) { // what is newer was written by somebody who had looked for that
			if gone, gerr := f.Unlinked(); gone && gerr == nil {
				n.replace(f)
				f.Unref()
				continue
			}
		}
		f.Unref()
		if err != nil {
			return err
		}
		if r.Boot != n.p.st.Boot {
			r.Claims = nil
			mine = false
		}
		n.observe(r, surplus)
		if mine {
			n.rewatch(r)
			n.record, n.stamp = r, seen // an operation that finds this stamp need not decode it again
		}
		return nil
	}
}

// rewatch watches whom the waiting claims wait for by r. The turn is the caller's.
func (n *nameState) rewatch(r *layout.Record) {
	if n.Waits() {
		n.watch.update(r, n.wanted(r))
	}
}

// Waits implements link.Watcher.
func (n *nameState) Waits() bool { return n.waiting.Load() > 0 }

// Check implements link.Watcher: it drops the claims of the dead, and those of own sessions that nobody here knows or whose
// release failed, in the background.
func (n *nameState) Check() {
	if n.checking.Swap(true) {
		return // one that has not begun yet will see what this one would
	}
	n.p.start(func() {
		o, err := n.begin(n.p.ctx)
		n.checking.Store(false)
		if err != nil {
			if n.Waits() {
				n.p.later(n) // unless the driver is closed
			}
			return
		}
		defer n.endTurn()
		err = o.dropUnwanted(n.wants)
		if cerr := n.commit(o); err != nil || cerr != nil {
			n.p.later(n)
		}
	})
}
