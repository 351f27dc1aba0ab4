//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/link"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// Driver is a store in a directory, as one process sees it. It is safe for concurrent use.
type Driver struct {
	*process
	names *names

	mu       sync.Mutex
	ending   bool // no new sessions
	sessions map[*session]bool
}

// Stats says what a driver has asked of its directory so far.
type Stats struct {
	RecordWrites uint64 // writes of records: one for each claim that enters or leaves, none for one that cannot be held
	RecordReads  uint64 // reads of records, also to list lines
	Syncs        uint64 // waits for the disk: at most one a minute
	Messages     uint64 // wake-ups sent to other processes
}

// Stats returns what d has asked of its directory so far.
func (d *Driver) Stats() Stats {
	return Stats{
		RecordWrites: d.stats.writes.Load(), RecordReads: d.stats.reads.Load(),
		Syncs: d.floor.Syncs.Load(), Messages: d.peers.Sent.Load(),
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
	p := &process{background: newBackground(), st: st, logger: options.Logger, own: map[layout.SessionKey]*layout.SessionFile{}}
	if p.floor, err = layout.OpenFloor(st, p.start); err != nil {
		st.Close()
		return nil, err
	}
	p.peers = link.NewPeers(p.ctx, st, p.start)
	d := &Driver{process: p, names: newNames(p, options.Files), sessions: map[*session]bool{}}
	d.start(d.sweepNowAndThen)
	d.start(func() { layout.Castagnoli() }) // before the first session needs it
	return d, nil
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
	if err := d.enter(); err != nil { // what it uses is not closed before it has ended
		return nil, err
	}
	defer d.leave()
	s, err := newSession(d.process, d.names, spec, d.forget)
	if err != nil {
		return nil, fmt.Errorf("filelock: open a session: %w", unable(err))
	}
	if !d.keep(s) {
		s.discard()
		return nil, layout.ErrClosed
	}
	d.start(s.inbox.Serve)
	return s, nil
}

// keep notes a session, so that Close closes it. It returns false once Close has begun: the session would be closed by
// nobody, and its inbox waited for.
func (d *Driver) keep(s *session) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ending {
		d.sessions[s] = true
	}
	return !d.ending
}

// forget notes that a session is closed.
func (d *Driver) forget(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, s)
}

// Close implements driver.Driver: it ends the sessions that d opened, and closes all files.
func (d *Driver) Close(ctx context.Context) error {
	sessions, first := d.end()
	if !first {
		return nil
	}
	var failed error
	for _, s := range sessions {
		failed = errors.Join(failed, s.Close(ctx))
	}
	d.shut()
	return failed
}

// end lets no session be opened any more, and returns those that are open. It reports false if that was done before.
func (d *Driver) end() (sessions []*session, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, d.ending = !d.ending, true
	return slices.Collect(maps.Keys(d.sessions)), first
}

// shut stops what goes on in the background and closes all files. Sessions that are still open keep their claims until
// this process ends.
func (d *Driver) shut() {
	d.close()
	d.peers.Close()
	d.tasks.Wait()
	d.names.close()
	d.floor.Close()
	d.st.Close()
}
