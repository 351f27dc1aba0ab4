//go:build linux || darwin

package filelock

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The sweeper removes what nobody needs: records of names that have been idle for long, and the files of sessions that
// died. One process of the store does it, every ten minutes; a store used only by short-lived programs is swept by
// whichever of them begins when it is due.
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
		if d.floor.dueToSweep(uint64(d.st.bootClock())) {
			d.sweep(d.ctx, sweepIdle)
		}
		t.Reset(sweepEvery)
	}
}

// sweep removes dead sessions, and empty records that nobody has written to for idle.
func (d *Driver) sweep(ctx context.Context, idle time.Duration) {
	entries, _ := os.ReadDir(d.st.sessions)
	for _, e := range entries {
		if ctx.Err() != nil {
			return
		}
		if isOfSession(d.st.sessions, e) {
			d.sweepSession(e.Name())
		}
	}
	entries, _ = os.ReadDir(d.st.locks)
	for _, e := range entries {
		if ctx.Err() != nil {
			return
		}
		if info, err := e.Info(); err == nil && isRecord(d.st.locks, e) && d.st.wallClock().Sub(info.ModTime()) >= idle {
			d.sweepRecord(filepath.Join(d.st.locks, e.Name()))
		}
	}
}

// sweepSession removes the files of a session whose process tree has ended, and drafts that nobody completes.
func (d *Driver) sweepSession(file string) {
	path := filepath.Join(d.st.sessions, file)
	name := strings.TrimSuffix(strings.TrimSuffix(file, socketSuffix), draftSuffix)
	raw, err := hex.DecodeString(name)
	if err != nil || len(raw) != len(sessionKey{}) {
		return
	}
	switch {
	case file == name:
		key := sessionKey(raw)
		if d.local(key) != nil {
			return
		}
		if f, err := d.st.openSession(key); err == nil {
			if f.orphaned() {
				f.remove()
			}
			f.file.Close()
		}
	case old(path, d.st.wallClock()):
		// A socket or a draft without a session: whoever began to open it died, or is about to finish.
		if _, err := os.Lstat(filepath.Join(d.st.sessions, name)); os.IsNotExist(err) {
			os.Remove(path)
		}
	}
}

func old(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	return err == nil && now.Sub(info.ModTime()) > time.Hour
}

// sweepRecord removes a record that is empty or has claims of the dead alone. It holds the record's lock while it does, and whoever waited for that
// lock finds that the file has lost its name. Where the clock has been set back behind the record's tokens, the base
// of new records is raised above them first.
func (d *Driver) sweepRecord(path string) {
	f, err := d.st.openRecord(path, false)
	if err != nil {
		return
	}
	defer f.unref()
	if ok, _ := flock(f.fd, unix.LOCK_EX); !ok {
		return
	}
	defer f.unlock()
	if gone, err := f.unlinked(); gone || err != nil {
		return
	}
	r, _, err := f.read(nil, stamp{})
	if err != nil || r.boot == d.st.boot && r.closed > d.st.bootClock() {
		return
	}
	for _, c := range r.Claims {
		if r.boot == d.st.boot && !d.over(sessionKey([]byte(c.Session)), true) {
			return
		}
	}
	if d.floor.forget(r.Fence) == nil {
		os.Remove(path)
	}
}

// slow tells the operator that a record's lock has been taken for long. Like everything that is logged here it is told by a
// goroutine of its own: a log that blocks holds up no lock.
func (d *Driver) slow(f *recordFile) {
	go d.options.Logger.Warn("filelock: a record has been locked for more than a second; its lock is held for microseconds unless the process is stopped",
		"record", f.path, "holder", f.owner())
}
