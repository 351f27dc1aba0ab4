//go:build linux || darwin

package filelock

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/interlock-go/interlock/driver/line"
)

// A record that is damaged does not tell who holds. It is begun anew, without claims, and closed: nobody is granted anything
// before all who may hold have been told, or their time is over.
//
// The order matters. First the new record is written; a renewal from then on finds its claim gone. Then the ends of all
// sessions are read: what a session has been trusted with before, it has until then. The line is closed until the latest
// of them. Were they read before, a renewal could come between and be trusted for longer.

// notYetKnown is the end of a closed line whose second step has not been made: whoever finds it makes it.
const notYetKnown = int64(math.MaxInt64)

// begins begins the line of a damaged record anew. The caller has its flock.
func (k *desk) begins(f *recordFile) (*operation, error) {
	r := &record{Line: line.Line{Name: k.name}, boot: k.d.st.boot, closed: notYetKnown}
	if err := k.d.floor.use(func() error {
		r.Fence = k.d.floor.durable().Load() // no token above it was ever handed out
		return nil
	}); err != nil {
		return nil, fmt.Errorf("filelock: the record is damaged, and so is the floor of the tokens: %w", err)
	}
	r.generation = uint64(k.d.st.BootClock())
	if _, _, err := f.write(r, nil); err != nil {
		return nil, err
	}
	k.d.stats.writes.Add(1)
	go k.d.options.Logger.Warn("filelock: a record was damaged, and its line begins anew: nobody can tell who held the lock, so it is closed until every session's time of now is over",
		"name", k.name, "record", f.path)
	return k.load(f)
}

// closeUntilAllKnow makes the second step: it sets until when the line is closed, and has all sessions look at it.
func (o *operation) closeUntilAllKnow() error {
	st := o.k.d.st
	until := o.boot
	files, err := os.ReadDir(st.sessions)
	if err != nil {
		return fmt.Errorf("filelock: %w", err)
	}
	for _, e := range files {
		raw, err := hex.DecodeString(e.Name())
		if err != nil || len(raw) != len(sessionKey{}) {
			continue
		}
		key := sessionKey(raw)
		if s := o.k.d.local(key); s != nil && !o.k.holds(s) {
			continue // nobody knows better
		}
		end, err := st.endOf(key)
		if err != nil {
			return err
		}
		until = max(until, end)
		o.notify(string(key[:]))
	}
	o.line.closed, o.changed = until, true
	return nil
}

// holds reports whether a session of this process may hold here.
func (k *desk) holds(s *session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.claims {
		if c.s == s && c.joined {
			return true
		}
	}
	return false
}

// endOf returns the end of a session's time, 0 if it is over.
func (st *store) endOf(key sessionKey) (int64, error) {
	f, err := st.openSession(key)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	defer f.file.Close()
	until, live := f.until()
	switch {
	case !live || f.orphaned():
		return 0, nil
	case until == unknown:
		return 0, fmt.Errorf("filelock: session %s is damaged, too: want its process to end", st.sessionPath(key))
	}
	return until, nil
}

// shut reports whether the line is closed. It opens it when the time has come.
func (o *operation) shut() bool {
	if o.line.closed > o.boot {
		return true
	}
	o.line.closed = 0
	return false
}
