//go:build linux || darwin

package filelock

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// over reports whether a session is over, so that its claims may be dropped: its time has passed, its file was removed,
// or, with probe, its process tree has ended. It revokes the session unless that was the file.
func (d *Driver) over(key layout.SessionKey, probe bool) bool {
	if s := d.local(key); s != nil {
		return s.file.Over()
	}
	p, err := d.peer(key)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	p.mu.Lock()
	dead, linked := p.dead, p.conn != nil
	p.mu.Unlock()
	return dead || p.file.Over() || probe && !linked && p.file.Orphaned()
}

// rewatch makes sure that this process hears of the death of everybody whose leaving one of its waiting claims needs:
// each waits for the one before it, and the first that waits for all who hold. A link is made after the line was
// written or read, but what happens in between is not lost: who leaves tells those who stand in the line, and a link to
// somebody who has died is refused. The turn is the caller's.
func (k *desk) rewatch(r *layout.Record) {
	if k.waiting.Load() == 0 {
		return
	}
	checkAt := func(end int64) {
		if end != k.nextEnd {
			k.nextEnd = end
			k.d.after(time.Duration(end-k.d.st.BootClock()), k.check)
		}
	}
	for _, end := range r.Ends {
		checkAt(end)
	}
	if r.Closed != 0 {
		checkAt(r.Closed)
	}
	waiting := k.wanted(r)
	if len(waiting) == 0 {
		return
	}
	if clear(k.want); len(waiting) > 100 { // what a crowd has left behind would be cleared for ever
		k.want = map[layout.SessionKey]bool{}
	}
	add := func(session string) { k.want[layout.SessionKey([]byte(session))] = true }
	first := slices.IndexFunc(r.Claims, func(c line.Claim) bool { return !c.Held })
	for _, i := range waiting {
		session := r.Claims[i].Session
		for j := i - 1; j >= 0; j-- {
			if r.Claims[j].Session != session {
				add(r.Claims[j].Session)
				if i > first {
					break
				}
			}
			if _, waits := slices.BinarySearch(waiting, j); waits && i > first {
				break // the same session waits there, and watches for both
			}
		}
	}
	for key := range k.watching {
		if !k.want[key] {
			delete(k.watching, key)
		}
	}
	for key := range k.want {
		p := k.watching[key]
		if p == nil {
			var err error
			if p, err = k.d.peer(key); err != nil {
				if errors.Is(err, os.ErrNotExist) {
					k.check()
				} else {
					k.d.later(k)
				}
				continue
			}
			k.watching[key] = p
		}
		if !p.watch(k) {
			delete(k.watching, key)
			k.check()
		}
	}
}

// later checks a line in a second, after something failed that may not fail then.
func (d *Driver) later(k *desk) { d.after(time.Second, k.check) }

// after calls f when pause is over, unless the driver is closed by then.
func (d *Driver) after(pause time.Duration, f func()) {
	d.start(func() {
		t := time.NewTimer(max(pause, 0))
		defer t.Stop()
		select {
		case <-d.ctx.Done():
		case <-t.C:
			f()
		}
	})
}
