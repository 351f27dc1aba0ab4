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

// restart writes the first record of the line of name that begins anew. The caller has the flock of f.
func (p *process) restart(f *layout.RecordFile, name string) error {
	r := &layout.Record{Line: line.Line{Name: name}, Boot: p.st.Boot, Closed: layout.NotYetKnown}
	var err error
	if r.Fence, err = p.floor.Highest(); err != nil { // no token above it was ever handed out
		return fmt.Errorf("filelock: the record is damaged, and so is the floor of the tokens: %w", err)
	}
	r.Generation = uint64(p.st.BootClock())
	if _, _, err := f.Write(r, nil); err != nil {
		return err
	}
	p.stats.writes.Add(1)
	go p.logger.Warn("filelock: a record was damaged, and its line begins anew: nobody can tell who held the lock, so it is closed until every session's time of now is over",
		"name", name, "record", f.Path)
	return nil
}

// closeUntilAllKnow makes the second step: it sets until when the line is closed, and has all sessions look at it but those
// for which skip is true, which know that they do not hold.
func (o *operation) closeUntilAllKnow(skip func(layout.SessionKey) bool) error {
	until, known, err := o.p.st.LatestEnd(skip)
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
