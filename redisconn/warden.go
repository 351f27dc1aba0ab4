package redisconn

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// warden lets a caller go when its context ends while it waits for an answer by itself.
//
// A command that is alone has a connection of its own, on which the calling goroutine writes and reads itself: half the
// time of handing it to a writer and a reader. But then nothing but an answer or a deadline wakes the caller. So a warden
// looks every few milliseconds whether the context of that call is over, and then closes the connection. That is rare: an
// answer takes far less than the first look, so it needs a network or a server that stands still, and a caller that gives
// up just then. Commands that share a connection are rueidis' to abandon.
type warden struct {
	now     atomic.Pointer[deadline] // of the call under way, if any
	busy    atomic.Pointer[line]     // that it has written to: the others are idle, and rueidis would use them closed
	running atomic.Bool
}

// line is a connection for commands that are alone.
type line struct {
	net.Conn
	warden *warden
}

const (
	look = 5 * time.Millisecond
	rest = 200 // looks without a call until the warden goes
)

func newWarden() *warden { return &warden{} }

// enter begins a call. There is one at a time.
func (w *warden) enter(c *deadline) {
	w.busy.Store(nil)
	w.now.Store(c)
	if !w.running.Load() && w.running.CompareAndSwap(false, true) {
		go w.watch()
	}
}

func (w *warden) leave() { w.now.Store(nil) }

// watch closes the connection when the same call was over at two looks: after the first, it may have noticed itself.
func (w *warden) watch() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var over *deadline
	for idle := 0; ; {
		<-tick.C
		c := w.now.Load()
		switch {
		case c == nil:
			if idle++; idle > rest {
				w.running.Store(false)
				if w.now.Load() == nil || !w.running.CompareAndSwap(false, true) {
					return
				}
			}
		case c.parent.Err() == nil:
			idle, over = 0, nil
		case over != c:
			idle, over = 0, c
		default:
			if l := w.busy.Load(); l != nil && w.now.Load() == c {
				_ = l.Close()
			}
		}
	}
}

// aloneKey marks the context of a command that is alone, so that the connection which is made for it is known.
type aloneKey struct{}

// adopt makes c a connection that the warden may close, if it is made for commands that are alone.
func (w *warden) adopt(ctx context.Context, c net.Conn) net.Conn {
	if ctx.Value(aloneKey{}) == nil {
		return c
	}
	return &line{c, w}
}

// Write implements net.Conn.
func (l *line) Write(b []byte) (int, error) {
	l.warden.busy.Store(l)
	return l.Conn.Write(b)
}
