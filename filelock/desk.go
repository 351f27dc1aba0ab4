//go:build linux || darwin

package filelock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/line"
	"github.com/interlock-go/interlock/internal/mutant"
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
	hash hash
	path string

	users int           // guarded by d.mu: calls under way and claims of own sessions
	place *list.Element // guarded by d.mu: in d.open while the record is open

	turn     chan struct{} // has a token while an operation goes on
	record   *record       // the last one read or written in a turn; nil if it may be wrong
	stamp    stamp
	buf      []byte
	op       operation
	watching map[sessionKey]*peer // whose deaths this desk wants to hear of
	want     []sessionKey         // scratch of rewatch
	nextEnd  int64                // when a broken claim stops keeping others out, as the last timer knows

	mu         sync.Mutex
	file       *recordFile
	generation uint64 // of the newest record that the claims have seen
	round      uint64
	claims     map[string]*claim // of own sessions, by ID
	waiting    atomic.Int32      // how many of them wait

	checking atomic.Bool // a check is about to begin
	missed   atomic.Bool // a look came during an operation, which may have read the record before
}

// claim is a claim of a session of this process as it is known here; the truth stands in the record. Guarded by the
// desk's mu.
type claim struct {
	s        *session
	k        *desk
	id       string
	joined   bool // it stands in the record, or stood there
	released bool // its owner is releasing it, so it is not lost if it is gone
	stranded bool // the release failed: it is to be dropped
	grant    driver.Grant
	err      error         // why it is over although its owner has not released it
	round    uint64        // the last observation that saw it
	changed  chan struct{} // has a token while Wait should look again
}

func (st *store) recordPath(name string, h hash) string { return st.locks + "/" + recordName(name, h) }

// use returns the open record; the caller lets go of it by unref.
func (k *desk) use(create bool) (*recordFile, error) {
	k.mu.Lock()
	if f := k.file; f != nil {
		f.refs.Add(1)
		k.mu.Unlock()
		return f, nil
	}
	f, err := k.d.st.openRecord(k.path, create)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		k.mu.Unlock()
		for _, old := range k.d.spare() {
			old.closeFile()
		}
		k.mu.Lock()
		if f := k.file; f != nil { // somebody else was faster
			f.refs.Add(1)
			k.mu.Unlock()
			return f, nil
		}
		f, err = k.d.st.openRecord(k.path, create)
	}
	if err != nil {
		k.mu.Unlock()
		return nil, err
	}
	f.refs.Add(1)
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
		f.unref()
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
		f.unref()
	}
}

// replace forgets f, which lost its name.
func (k *desk) replace(f *recordFile) {
	k.mu.Lock()
	if k.file == f {
		k.file = nil
		defer f.unref()
	}
	k.mu.Unlock()
}

// operation is one change of a line: begin, then changes of line, then commit or abort, then end.
type operation struct {
	k       *desk
	f       *recordFile
	line    *record
	now     time.Time
	boot    int64
	changed bool
	first   string       // ID of the first claim that waited before
	tell    []sessionKey // who should look at the line afterwards
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
			return nil, errClosed
		}
	}
	o, err := k.seize(ctx)
	if err != nil {
		k.endTurn()
		return nil, fmt.Errorf("filelock: %q: %w: %w", k.name, driver.ErrNotSent, err)
	}
	return o, nil
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

// seize locks and reads the record. The turn is the caller's.
func (k *desk) seize(ctx context.Context) (*operation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		f, err := k.use(true)
		if err != nil {
			return nil, err
		}
		if err := f.lock(ctx, k.d.ctx, k.d.slow); err != nil {
			f.unref()
			return nil, err
		}
		// The sweeper removes a record under its lock: who waited for that lock has the lock of a file without a name,
		// while the next one makes a new file.
		gone, err := f.unlinked()
		if gone && !mutant.On("S21") {
			f.unlock()
			k.replace(f)
			f.unref()
			k.record = nil
			continue
		}
		if err == nil {
			var o *operation
			if o, err = k.load(f); err == nil {
				return o, nil
			}
		}
		f.unlock()
		f.unref()
		return nil, err
	}
}

// load reads the record in f for an operation.
func (k *desk) load(f *recordFile) (*operation, error) {
	k.d.stats.reads.Add(1)
	r, stamp, err := f.read(k.record, k.stamp)
	if err != nil {
		k.record = nil
		return nil, err
	}
	o := &k.op
	*o = operation{k: k, f: f, line: r, tell: o.tell[:0]}
	o.now, o.boot = k.d.now()
	switch {
	case r.generation == 0:
		// A new file continues behind every generation that a removed one can have reached.
		r.Name, r.boot, r.generation = k.name, k.d.st.boot, uint64(o.boot)
	case r.Name != k.name:
		return nil, fmt.Errorf("record %s is of another name, %q: want a name whose hash is another: %w", f.path, r.Name, driver.ErrRefused)
	case r.boot != k.d.st.boot:
		r.boot, r.Claims, r.ends, r.broken = k.d.st.boot, nil, nil, nil
	}
	k.record, k.stamp = r, stamp
	o.first = o.firstWaiting()
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
	granted, err := o.line.Settle(o.now, o.k.d.floor.draw)
	for _, i := range granted {
		o.notify(o.line.Claims[i].Session)
	}
	return err
}

// notify has the process of a session look at the line after the operation. Claims of this process learn of it in any
// case.
func (o *operation) notify(session string) {
	key := sessionKey([]byte(session))
	if o.k.d.local(key) == nil && !slices.Contains(o.tell, key) {
		o.tell = append(o.tell, key)
	}
}

// leave takes a claim out of the line and reports whether it was held.
func (o *operation) leave(id string) (held bool, err error) {
	o.line.broken = slices.DeleteFunc(o.line.broken, func(b string) bool {
		o.changed = o.changed || b == id
		return b == id
	})
	i := o.line.Find(id)
	if i < 0 {
		return false, nil
	}
	waited := !o.line.Claims[i].Held
	delete(o.line.ends, id)
	_, held = o.line.Leave(id)
	err = o.settle()
	if waited && i < len(o.line.Claims) && !o.line.Claims[i].Held {
		o.notify(o.line.Claims[i].Session) // it watched the one who left, and must find another
	}
	return held, err
}

// reap drops claims whose time is over or whose owners are dead and reports whether there were any. Who waits is asked
// for only with waiting, and where few stand in line: a waiter is watched by the one behind it, and asked when it holds.
func (o *operation) reap(waiting bool) (bool, error) {
	const fewEnough = 64
	all := waiting && len(o.line.Claims) <= fewEnough
	verdict := map[string]bool{}
	cleared := false
	for {
		// Once some are dropped others hold, who are asked in turn.
		dropped := o.line.Drop(func(c line.Claim) bool {
			if c.Broken && o.line.ends[c.ID] <= o.k.d.st.bootClock() {
				return true
			}
			over, asked := verdict[c.Session]
			if !asked && (all || c.Held) {
				over = o.k.d.over(sessionKey([]byte(c.Session)))
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
				o.line.remember(c.ID)
			}
			delete(o.line.ends, c.ID)
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

// remember keeps the ID of a claim that was broken and has left.
func (r *record) remember(id string) {
	if len(r.broken) == maxBroken {
		r.broken = r.broken[1:]
	}
	r.broken = append(slices.Clip(r.broken), id)
}

// commit writes the line if it has changed, unlocks the record, and tells everybody: other processes first. The turn
// stays with the caller until end.
func (o *operation) commit() error {
	k := o.k
	if o.changed {
		// Others are told of a change twice, before and after it, so that a renewal which looks in between looks again.
		for _, key := range o.tell {
			if p, err := k.d.peer(key); err == nil {
				p.file.changes().Add(1)
			}
		}
		o.line.generation++
		k.d.stats.writes.Add(1)
		full, stamp, err := o.f.write(o.line, k.buf)
		k.buf, k.stamp = full, stamp
		if err != nil {
			o.abort()
			return fmt.Errorf("filelock: %q: %w", k.name, err)
		}
	}
	o.f.unlock()
	o.f.unref()
	if o.changed {
		if f := o.firstWaiting(); f != "" && f != o.first && o.holders() > 1 {
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

// holders returns how many claims hold.
func (o *operation) holders() (n int) {
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
	o.f.unlock()
	o.f.unref()
}

// end lets the next operation of this process begin.
func (o *operation) end() { o.k.endTurn() }

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
		before := uint64(k.d.st.bootClock())
		f, err := k.use(false)
		if errors.Is(err, os.ErrNotExist) {
			// Nobody stands in a line without a record: every claim is gone. A record made from now on is newer.
			k.observe(&record{generation: before}, surplus)
			return nil
		}
		if err != nil {
			return err
		}
		k.d.stats.reads.Add(1)
		r, seen, err := f.peek()
		if gone, gerr := f.unlinked(); gone && gerr == nil {
			k.replace(f)
			f.unref()
			continue
		}
		f.unref()
		if err != nil {
			return err
		}
		if r.boot != k.d.st.boot {
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

// observe lets the claims of this process see a record. It only moves them forward: an older record than the newest
// that they have seen says nothing, and a claim that is not in it although it has never stood in one is about to join.
// With surplus it also looks for claims that stand in the record for sessions of this process although nobody here
// knows them, and has them dropped.
func (k *desk) observe(r *record, surplus bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.generation < k.generation {
		return
	}
	k.generation = r.generation
	k.round++
	for i := range r.Claims {
		in := &r.Claims[i]
		c := k.claims[in.ID]
		if c == nil {
			if surplus && k.d.local(sessionKey([]byte(in.Session))) != nil {
				k.check()
			}
			continue
		}
		c.joined, c.round = true, k.round
		switch {
		case in.Broken:
			c.lose(driver.ErrBroken)
		case in.Held && !c.grant.Held && c.err == nil:
			c.grant = driver.Grant{Held: true, Fence: in.Fence}
			k.waiting.Add(-1)
			c.wake()
		}
	}
	for _, c := range k.claims {
		if c.joined && c.round != k.round {
			if slices.Contains(r.broken, c.id) {
				c.lose(driver.ErrBroken)
			} else {
				c.lose(driver.ErrGone)
			}
		}
	}
}

// wake lets Wait look at the claim again.
func (c *claim) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// lose notes that the claim is over although its owner did not release it. The desk's mu is held.
func (c *claim) lose(why error) {
	if c.err != nil || c.released {
		return
	}
	if !c.grant.Held {
		c.k.waiting.Add(-1)
	}
	c.err = why
	c.wake()
	c.s.report(c.id)
}

// enlist makes a claim known before it is sent, so that a grant which comes at once finds it. It returns the one that
// is known already.
func (k *desk) enlist(s *session, id string) *claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.claims[id]; c != nil {
		return c
	}
	c := &claim{s: s, k: k, id: id, changed: make(chan struct{}, 1)}
	k.claims[id] = c
	k.waiting.Add(1)
	k.d.mu.Lock()
	k.users++
	k.d.mu.Unlock()
	s.mu.Lock()
	s.claims[id] = c
	s.mu.Unlock()
	return c
}

// strike removes a claim that stands in no line any more.
func (k *desk) strike(s *session, id string) {
	k.mu.Lock()
	c := k.claims[id]
	if c == nil || c.s != s {
		k.mu.Unlock()
		return
	}
	delete(k.claims, id)
	if !c.grant.Held && c.err == nil {
		k.waiting.Add(-1)
	}
	c.released = true
	if c.err == nil {
		c.err = driver.ErrGone
	}
	c.wake()
	k.mu.Unlock()
	s.mu.Lock()
	delete(s.claims, id)
	s.mu.Unlock()
	k.d.unuse(k)
}

// withdraw forgets a claim that did not get into the line; one that stands there, asked for again, stays.
func (k *desk) withdraw(c *claim) {
	k.mu.Lock()
	joined := c.joined
	k.mu.Unlock()
	if !joined {
		k.strike(c.s, c.id)
	}
}

// fate reports whether a claim that is not in line has stood there before, and how it came to leave.
func (k *desk) fate(c *claim, r *record) (joined bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !c.joined {
		return false, nil
	}
	why := c.err
	if why == nil {
		why = driver.ErrGone
		if slices.Contains(r.broken, c.id) {
			why = driver.ErrBroken
		}
	}
	return true, fmt.Errorf("filelock: %q: %w", k.name, why)
}

// release notes that a claim is being released, and, with stranded, that this has failed. In between nobody else may
// drop it, or its owner would hear that it was not held.
func (k *desk) release(s *session, id string, stranded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.claims[id]; c != nil && c.s == s {
		c.released, c.stranded = true, stranded
	}
}

// state returns how a claim stands.
func (k *desk) state(c *claim) (driver.Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.grant, c.err
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
		_, err = o.reap(true)
		for _, c := range slices.Clone(o.line.Claims) {
			if s := k.d.local(sessionKey([]byte(c.Session))); s != nil && !k.wants(c.ID) {
				_, lerr := o.leave(c.ID)
				err = errors.Join(err, lerr)
			}
		}
		if cerr := o.commit(); err != nil || cerr != nil {
			k.d.later(k)
		}
	})
}

// wanted returns the claims of the line, by index, that wait and are known here and not released.
func (k *desk) wanted(r *record) (indexes []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range r.Claims {
		if in := &r.Claims[i]; !in.Held {
			if c := k.claims[in.ID]; c != nil && !c.released {
				indexes = append(indexes, i)
			}
		}
	}
	return indexes
}

// wants reports whether a claim is known here and not stranded.
func (k *desk) wants(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.claims[id]
	return c != nil && !c.stranded && !(c.released && mutant.On("filelock-overtaken"))
}
