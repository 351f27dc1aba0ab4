//go:build linux || darwin

package filelock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// Driver is a store in a directory, as one process sees it. It is safe for concurrent use.
type Driver struct {
	st      *layout.Store
	floor   *layout.Floor
	options Options

	ctx    context.Context //nolint:containedctx // of everything that goes on in the background; ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	stats  counters
	deaf   atomic.Bool // for tests: wake-ups are lost

	mu       sync.Mutex
	ending   bool // no new sessions
	closed   bool // nothing at all
	desks    map[string]*desk
	byHash   map[layout.Hash]*desk
	open     *list.List // of *desk: those with an open record, the last used one first
	sessions map[layout.SessionKey]*session
	peers    map[layout.SessionKey]*peer
}

// Stats says what a driver has asked of its directory so far.
type Stats struct {
	RecordWrites uint64 // writes of records: one for each claim that enters or leaves, none for one that cannot be held
	RecordReads  uint64 // reads of records, also to list lines
	Syncs        uint64 // waits for the disk: at most one a minute
	Messages     uint64 // wake-ups sent to other processes
}

type counters struct{ writes, reads, messages atomic.Uint64 }

// Stats returns what d has asked of its directory so far.
func (d *Driver) Stats() Stats {
	return Stats{
		RecordWrites: d.stats.writes.Load(), RecordReads: d.stats.reads.Load(),
		Syncs: d.floor.Syncs.Load(), Messages: d.stats.messages.Load(),
	}
}

// New opens the store in the directory dir and makes it if it is missing; the directory above must exist. A program
// needs one Driver for a directory; several do not disturb each other.
//
// The error says what would be right when the directory cannot carry a store: because of its rights, its file system,
// the version that wrote it, or this system, which then matches errors.ErrUnsupported.
func New(dir string, o *Options) (*Driver, error) {
	return newDriver(dir, o, machine.Host)
}

func newDriver(dir string, o *Options, sys machine.System) (*Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	st, err := layout.OpenStore(dir, sys)
	if err != nil {
		return nil, err
	}
	d := &Driver{
		st: st, options: options,
		desks: map[string]*desk{}, byHash: map[layout.Hash]*desk{}, open: list.New(),
		sessions: map[layout.SessionKey]*session{}, peers: map[layout.SessionKey]*peer{},
	}
	if d.floor, err = layout.OpenFloor(st, d.start); err != nil {
		st.Close()
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.start(d.sweepNowAndThen)
	d.start(func() { layout.Castagnoli() }) // before the first session needs it
	return d, nil
}

// start runs f in the background until it returns, unless d is closed.
func (d *Driver) start(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.tasks.Go(f)
	}
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits { return traits() }

// Key implements driver.Keyer: it returns the path of the record.
func (d *Driver) Key(name string) string { return d.st.RecordPath(name, layout.HashOf(name)) }

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("filelock: open: %w: %w", driver.ErrNotSent, err)
	}
	if spec.TTL < minTTL || spec.TTL > maxTTL {
		return nil, fmt.Errorf("filelock: TTL %v: want %v to %v: %w", spec.TTL, minTTL, maxTTL, driver.ErrRefused)
	}
	d.mu.Lock()
	if d.ending {
		d.mu.Unlock()
		return nil, layout.ErrClosed
	}
	d.tasks.Add(1) // what it uses is not closed before it has ended
	d.mu.Unlock()
	defer d.tasks.Done()
	s, err := d.openSession(spec)
	if err != nil {
		return nil, fmt.Errorf("filelock: open a session: %w", unable(err))
	}
	return s, nil
}

// Close implements driver.Driver: it ends the sessions that d opened, and closes all files.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	if d.ending {
		d.mu.Unlock()
		return nil
	}
	d.ending = true // a session opened from now on would be closed by nobody, and its listener waited for
	var sessions []*session
	for _, s := range d.sessions {
		sessions = append(sessions, s)
	}
	d.mu.Unlock()
	var failed error
	for _, s := range sessions {
		failed = errors.Join(failed, s.Close(ctx))
	}
	d.shut()
	return failed
}

// shut stops what goes on in the background and closes all files. Sessions that are still open keep their claims until
// this process ends.
func (d *Driver) shut() {
	d.mu.Lock()
	d.ending, d.closed = true, true
	var peers []*peer
	for _, p := range d.peers {
		peers = append(peers, p)
	}
	desks := d.desks
	d.desks, d.byHash = map[string]*desk{}, map[layout.Hash]*desk{}
	d.open.Init()
	d.mu.Unlock()
	d.cancel()
	for _, p := range peers {
		p.close()
	}
	d.tasks.Wait()
	for _, k := range desks {
		k.closeFile()
	}
	d.floor.Close()
	d.st.Close()
}

// desk returns the desk of a name and keeps it until leave.
func (d *Driver) desk(name string) (*desk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, layout.ErrClosed
	}
	k := d.desks[name]
	if k == nil {
		if len(name) == 0 || len(name) > maxName {
			return nil, fmt.Errorf("filelock: a name of %d bytes: want 1 to %d: %w", len(name), maxName, driver.ErrName)
		}
		h := layout.HashOf(name)
		k = &desk{
			d: d, name: name, hash: h, path: d.st.RecordPath(name, h),
			turn: make(chan struct{}, 1), claims: map[string]*claim{}, watching: map[layout.SessionKey]*peer{}, want: map[layout.SessionKey]bool{},
		}
		d.desks[name], d.byHash[h] = k, k
	}
	k.users++
	d.tasks.Add(1) // what the caller uses is not closed before leave
	if k.place != nil {
		d.open.MoveToFront(k.place)
	}
	return k, nil
}

// leave lets go of a desk.
func (d *Driver) leave(k *desk) {
	d.unuse(k)
	d.tasks.Done()
}

// unuse counts one user of a desk less. One that nobody uses and whose record is not open is forgotten.
func (d *Driver) unuse(k *desk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k.users--
	if k.users == 0 && k.place == nil && d.desks[k.name] == k {
		delete(d.desks, k.name)
		delete(d.byHash, k.hash)
	}
}

// keepOpen notes that k has an open record, and returns desks whose records are to be closed for it.
func (d *Driver) keepOpen(k *desk) (closing []*desk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.place != nil || d.closed {
		return nil
	}
	k.place = d.open.PushFront(k)
	for d.open.Len() > d.options.Files {
		closing = append(closing, d.dropOldest())
	}
	return closing
}

// spare forgets half of the open records, because this process may not open more files.
func (d *Driver) spare() (closing []*desk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := (d.open.Len() + 1) / 2; n > 0; n-- {
		closing = append(closing, d.dropOldest())
	}
	return closing
}

// dropOldest forgets that the record which was not used for longest is open. The driver's mu is held.
func (d *Driver) dropOldest() *desk {
	old := d.open.Remove(d.open.Back()).(*desk)
	old.place = nil
	if old.users == 0 {
		delete(d.desks, old.name)
		delete(d.byHash, old.hash)
	}
	return old
}

// known returns the desk of a record's hash if somebody here uses it.
func (d *Driver) known(h layout.Hash) *desk {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.byHash[h]
	if k == nil || k.users == 0 || d.closed {
		return nil
	}
	k.users++
	d.tasks.Add(1)
	return k
}

// local returns the session of this driver with the given key, or nil.
func (d *Driver) local(key layout.SessionKey) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[key]
}

// now reads both clocks.
func (d *Driver) now() (wall time.Time, boot int64) { return d.st.WallClock(), d.st.FastClock() }
