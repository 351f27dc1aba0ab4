//go:build linux || darwin

package filelock

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// The sweeper removes what nobody needs: records of names that have been idle for long, and the files of sessions that
// died. One process of the store does it, every ten minutes; a store used only by short-lived programs is swept by
// whichever of them begins when it is due. Never at a release: to make a file and to remove it costs more than all the rest
// of a lock, so names that are locked again keep theirs.
const (
	sweepEvery = 10 * time.Minute
	sweepIdle  = 10 * time.Minute
)

// sweepNowAndThen sweeps whenever it is due until the driver is closed.
func (d *Driver) sweepNowAndThen() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-t.C:
		}
		if d.floor.DueToSweep(uint64(d.st.BootClock()), sweepEvery) {
			d.sweep(d.ctx, sweepIdle)
		}
		t.Reset(sweepEvery)
	}
}

// sweep removes dead sessions, and records that nobody has written to for idle.
func (d *Driver) sweep(ctx context.Context, idle time.Duration) {
	_, _ = d.Prune(ctx, "", idle) // what cannot be read now is tried again when it is due again
}

// Prune implements driver.Pruner: it removes records that nobody has written to for idle and in which nobody stands whose
// process lives, and, of all names, what dead sessions left. Tokens go on growing.
func (d *Driver) Prune(ctx context.Context, prefix string, idle time.Duration) (removed int, err error) {
	if idle < 0 {
		return 0, fmt.Errorf("filelock: prune: idle for %v: want 0 or more: %w", idle, driver.ErrRefused)
	}
	entries, err := os.ReadDir(d.st.Sessions)
	if err != nil {
		return 0, fmt.Errorf("filelock: prune: %w", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("filelock: prune: %w", err)
		}
		if layout.IsOfSession(d.st.Sessions, e) {
			d.sweepSession(e.Name())
		}
	}
	if entries, err = os.ReadDir(d.st.Locks); err != nil {
		return 0, fmt.Errorf("filelock: prune: %w", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return removed, fmt.Errorf("filelock: prune: %w", err)
		}
		info, err := e.Info()
		if err != nil || !layout.IsRecord(d.st.Locks, e) || d.st.WallClock().Sub(info.ModTime()) < idle {
			continue
		}
		if d.remove(filepath.Join(d.st.Locks, e.Name()), func(r *layout.Record) bool { return strings.HasPrefix(r.Name, prefix) && !d.stands(r) }) {
			removed++
		}
	}
	return removed, nil
}

// stands reports whether somebody stands in a line whose time is not over.
func (d *Driver) stands(r *layout.Record) bool {
	return r.Boot == d.st.Boot && slices.ContainsFunc(r.Claims, func(c line.Claim) bool { return !d.over(layout.SessionKey([]byte(c.Session)), true) })
}

// sweepSession removes the files of a session whose process tree has ended, and drafts that nobody completes.
func (d *Driver) sweepSession(file string) {
	path := filepath.Join(d.st.Sessions, file)
	name, _, _ := strings.Cut(file, ".")
	raw, err := hex.DecodeString(name)
	if err != nil || len(raw) != len(layout.SessionKey{}) {
		return
	}
	switch {
	case file == name:
		key := layout.SessionKey(raw)
		if d.local(key) != nil {
			return
		}
		if f, err := d.st.OpenSession(key); err == nil {
			if f.Orphaned() {
				f.Remove()
			}
			f.File.Close()
		}
	case old(path, d.st.WallClock()):
		// A socket, a roll or a draft without a session: whoever began to open it died, or is about to finish.
		if _, err := os.Lstat(filepath.Join(d.st.Sessions, name)); os.IsNotExist(err) {
			os.Remove(path)
		}
	}
}

func old(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	return err == nil && now.Sub(info.ModTime()) > time.Hour
}

// remove removes a record if it may go, and reports that. It holds the record's lock while it does, and whoever waited for that
// lock finds that the file has lost its name. Where the clock has been set back behind the record's tokens, the base
// of new records is raised above them first.
func (d *Driver) remove(path string, may func(*layout.Record) bool) bool {
	f, err := d.st.OpenRecord(path, false)
	if err != nil {
		return false
	}
	defer f.Unref()
	if !f.TryLock() {
		return false // somebody is just using it
	}
	defer f.Unlock()
	if gone, err := f.Unlinked(); gone || err != nil {
		return false
	}
	r, _, err := f.Read(nil, layout.Stamp{})
	if err != nil || r.Boot == d.st.Boot && r.Closed > d.st.BootClock() || !may(r) {
		return false
	}
	return d.floor.Forget(r.Fence) == nil && os.Remove(path) == nil
}
