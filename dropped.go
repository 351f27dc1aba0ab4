package interlock

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
)

// watch has the young leases looked after: one that its user drops is logged. To be told of a drop costs a fifth of what a
// lease does that is passed on and released at once. So it is left until the trust timer comes, which is within
// longestSleep, or the heartbeat, which puts that timer off where it comes more often; till then the pool itself keeps the
// lease alive.
func (s *session) watch() {
	if n := len(s.pool.young); n > 0 {
		go s.pool.watch(n)
	}
}

// watch takes a few at a time, of which there may be ten thousand: nobody's end of trust waits for all of them.
func (p *pool) watch(young int) {
	for ; young > 0; young -= few {
		p.mu.Lock()
		n := 0
		for l := range p.young {
			if n++; n > few {
				break
			}
			l.dropped = runtime.AddCleanup(l, (*lease).warnDropped, l.lease)
			delete(p.young, l)
		}
		p.mu.Unlock()
	}
}

const few = 64

// warnDropped says once that a lease was forgotten. It goes on being held: its user may still be at work with its
// context.
func (l *lease) warnDropped() {
	l.mu.Lock()
	over := l.err != nil
	l.mu.Unlock()
	if !over {
		l.client.log(slog.LevelWarn, "interlock: lease dropped without Release; it is held until the process ends or its MaxHold is over",
			"name", l.name, "locked_at", caller(l.place[:]))
	}
}

// caller returns the first place outside of this package.
func caller(pcs []uintptr) string {
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "github.com/interlock-go/interlock.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "unknown"
		}
	}
}
