//go:build linux || darwin

package filelock

import (
	"fmt"

	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// A record that is damaged does not tell who holds. It is begun anew, without claims, and closed: nobody is granted anything
// before all who may hold have been told, or their time is over.
//
// The order matters. First the new record is written; a renewal from then on finds its claim gone. Then the ends of all
// sessions are read: what a session has been trusted with before, it has until then. The line is closed until the latest
// of them. Were they read before, a renewal could come between and be trusted for longer.

// begins begins the line of a damaged record anew. The caller has its flock.
func (k *desk) begins(f *layout.RecordFile) (*operation, error) {
	r := &layout.Record{Line: line.Line{Name: k.name}, Boot: k.d.st.Boot, Closed: layout.NotYetKnown}
	var err error
	if r.Fence, err = k.d.floor.Highest(); err != nil { // no token above it was ever handed out
		return nil, fmt.Errorf("filelock: the record is damaged, and so is the floor of the tokens: %w", err)
	}
	r.Generation = uint64(k.d.st.BootClock())
	if _, _, err := f.Write(r, nil); err != nil {
		return nil, err
	}
	k.d.stats.writes.Add(1)
	go k.d.options.Logger.Warn("filelock: a record was damaged, and its line begins anew: nobody can tell who held the lock, so it is closed until every session's time of now is over",
		"name", k.name, "record", f.Path)
	return k.load(f)
}

// closeUntilAllKnow makes the second step: it sets until when the line is closed, and has all sessions look at it.
func (o *operation) closeUntilAllKnow() error {
	until, known, err := o.k.d.st.LatestEnd(func(key layout.SessionKey) bool {
		s := o.k.d.local(key)
		return s != nil && !o.k.holds(s) // nobody knows better
	})
	if err != nil {
		return err
	}
	for _, key := range known {
		o.notify(string(key[:]))
	}
	until = max(until, o.boot)
	o.line.Closed, o.changed = until, true
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
