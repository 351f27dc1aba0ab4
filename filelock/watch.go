//go:build linux || darwin

package filelock

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/link"
)

// watch has a name checked when something ends that its waiting claims wait for: the time of another session, its process,
// or the time for which a broken claim or a closed line keeps others out. The name's turn guards it.
type watch struct {
	p  *process
	by link.Watcher // the name

	watching map[layout.SessionKey]*link.Peer
	want     map[layout.SessionKey]bool // scratch
	nextEnd  int64                      // the last end that a timer was set for, on the boot-time clock
}

func newWatch(p *process, by link.Watcher) watch {
	return watch{p: p, by: by, watching: map[layout.SessionKey]*link.Peer{}, want: map[layout.SessionKey]bool{}}
}

// update watches what the claims at the given indexes of r wait for, which are in order and not held. Each waits for the
// one before it, and the first that waits for all who hold.
//
// A link is made after the line was written or read, but what happens in between is not lost: who leaves tells those who
// stand in the line, and a link to somebody who has died is refused.
func (w *watch) update(r *layout.Record, waiting []int) {
	for _, end := range r.Ends {
		w.checkAt(end)
	}
	if r.Closed != 0 {
		w.checkAt(r.Closed)
	}
	if len(waiting) == 0 {
		return
	}
	w.predecessors(r, waiting)
	for key := range w.watching {
		if !w.want[key] {
			delete(w.watching, key)
		}
	}
	for key := range w.want {
		p := w.watching[key]
		if p == nil {
			var err error
			if p, err = w.p.peers.Peer(key); err != nil {
				if errors.Is(err, os.ErrNotExist) {
					w.by.Check()
				} else {
					w.p.later(w.by)
				}
				continue
			}
			w.watching[key] = p
		}
		if !p.Watch(w.by) {
			delete(w.watching, key)
			w.by.Check()
		}
	}
}

// predecessors sets want to the sessions that the waiting claims wait for.
func (w *watch) predecessors(r *layout.Record, waiting []int) {
	if clear(w.want); len(waiting) > 100 { // what a crowd has left behind would be cleared for ever
		w.want = map[layout.SessionKey]bool{}
	}
	first := slices.IndexFunc(r.Claims, func(c line.Claim) bool { return !c.Held })
	for _, i := range waiting {
		session := r.Claims[i].Session
		for j := i - 1; j >= 0; j-- {
			if r.Claims[j].Session != session {
				w.want[layout.SessionKey([]byte(r.Claims[j].Session))] = true
				if i > first {
					break
				}
			}
			if _, waits := slices.BinarySearch(waiting, j); waits && i > first {
				break // the same session waits there, and watches for both
			}
		}
	}
}

// checkAt has the name checked at a time of the boot-time clock.
func (w *watch) checkAt(end int64) {
	if end != w.nextEnd {
		w.nextEnd = end
		w.p.after(time.Duration(end-w.p.st.BootClock()), w.by.Check)
	}
}
