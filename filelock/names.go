//go:build linux || darwin

package filelock

import (
	"container/list"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// maxName is the longest name that a record has room for.
const maxName = 1024

// names are the names that this process works on: those that a call uses or a claim stands for, and those whose records
// are open. It is safe for concurrent use.
type names struct {
	p     *process
	files int // how many records may be open

	mu     sync.Mutex
	byName map[string]*nameState
	byHash map[layout.Hash]*nameState
	open   *list.List // of *nameState: those with an open record, the last used one first
}

func newNames(p *process, files int) *names {
	return &names{p: p, files: files, byName: map[string]*nameState{}, byHash: map[layout.Hash]*nameState{}, open: list.New()}
}

// get returns the state of a name and keeps it until put. The driver is not closed before.
func (ns *names) get(name string) (*nameState, error) {
	if len(name) == 0 || len(name) > maxName {
		return nil, fmt.Errorf("filelock: a name of %d bytes: want 1 to %d: %w", len(name), maxName, driver.ErrName)
	}
	if err := ns.p.enter(); err != nil {
		return nil, err
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n := ns.byName[name]
	if n == nil {
		n = newNameState(ns.p, ns, name)
		ns.byName[name], ns.byHash[n.hash] = n, n
	}
	n.users++
	if n.place != nil {
		ns.open.MoveToFront(n.place)
	}
	return n, nil
}

// known returns the state of the name of a record's hash, until put, if somebody here uses it.
func (ns *names) known(h layout.Hash) *nameState {
	if ns.p.enter() != nil {
		return nil
	}
	if n := ns.used(h); n != nil {
		return n
	}
	ns.p.leave()
	return nil
}

// used counts one user more of a name that has some.
func (ns *names) used(h layout.Hash) *nameState {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n := ns.byHash[h]
	if n == nil || n.users == 0 {
		return nil
	}
	n.users++
	return n
}

// put ends what get or known began.
func (ns *names) put(n *nameState) {
	ns.unuse(n)
	ns.p.leave()
}

// use counts one user of a name more: a claim. The caller has the name by get.
func (ns *names) use(n *nameState) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n.users++
}

// unuse counts one user of a name less. A name that nobody uses and whose record is not open is forgotten.
func (ns *names) unuse(n *nameState) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n.users--
	ns.forget(n)
}

// forget removes a name unless somebody uses it or its record is open. The mu is held.
func (ns *names) forget(n *nameState) {
	if n.users == 0 && n.place == nil && ns.byName[n.name] == n {
		delete(ns.byName, n.name)
		delete(ns.byHash, n.hash)
	}
}

// keepOpen notes that n has an open record, and returns names whose records are to be closed for it.
func (ns *names) keepOpen(n *nameState) (closing []*nameState) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if n.place != nil {
		return nil
	}
	n.place = ns.open.PushFront(n)
	for ns.open.Len() > ns.files {
		closing = append(closing, ns.dropOldest())
	}
	return closing
}

// spare forgets half of the open records, because this process may not open more files.
func (ns *names) spare() (closing []*nameState) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	for i := (ns.open.Len() + 1) / 2; i > 0; i-- {
		closing = append(closing, ns.dropOldest())
	}
	return closing
}

// dropOldest forgets that the record which was not used for longest is open. The mu is held.
func (ns *names) dropOldest() *nameState {
	old := ns.open.Remove(ns.open.Back()).(*nameState)
	old.place = nil
	ns.forget(old)
	return old
}

// close closes all records. Nobody uses a name any more.
func (ns *names) close() {
	ns.mu.Lock()
	all := slices.Collect(maps.Values(ns.byName))
	ns.mu.Unlock()
	for _, n := range all {
		n.closeFile()
	}
}
