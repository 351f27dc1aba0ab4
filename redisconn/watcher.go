package redisconn

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// watcher wakes a caller whose context ends while it reads its answer itself.
//
// A command that is alone has a connection of its own, on which the calling goroutine writes and
// reads itself: half the time of handing it to a writer and a reader. But then only an answer or a
// deadline wakes the caller. So a watcher checks every few milliseconds whether the context of that
// call has ended, and then closes the connection. That is rare: an answer takes far less than one
// interval, so it needs a network or a server that stands still, and a caller that gives up just
// then.
//
// Commands that share a connection are abandoned by rueidis, which keeps the connection for
// seconds. A dead connection would get every retry as well. So when the time of a command is over,
// each connection is closed that has received nothing for half of that time although an answer was
// due. A slow connection that receives anything is not closed, nor one without an open request,
// however long it is quiet. On a Cluster it may be the connection of another master than the
// command's: an answer of that has been due for as long.
type watcher struct {
	now     atomic.Pointer[deadline] // of the call in flight, if any
	busy    atomic.Pointer[soloConn] // that it has written to: the others are idle, and rueidis would use them after they are closed
	running atomic.Bool

	opened atomic.Bool  // the client has its first connection
	making atomic.Int32 // connections for shared use, until the server has sent something
	made   atomic.Int32 // those that are open since then

	mu     sync.Mutex
	shares map[*sharedConn]struct{} // that are open
}

// soloConn is a connection for commands that are alone.
type soloConn struct {
	net.Conn
	watcher *watcher
}

// sharedConn is any other connection: one that commands share, or one of a subscription.
type sharedConn struct {
	net.Conn
	watcher *watcher

	commands bool // commands share it

	mu       sync.Mutex
	closed   bool
	made     func() // called once, when something was received or the connection is closed
	asked    int64  // when the first bytes were written after the last were received
	wrote    int64  // when the last bytes were written
	received int64  // when the last bytes were received; 0 for never
	overlap  int64  // when the last bytes were written before received, if not at asked: what was received may be the answer to earlier ones
}

const (
	interval  = 5 * time.Millisecond
	idleTicks = 200 // without a call, after which the goroutine ends

	silence = 50 * time.Millisecond // the least after which a shared connection is closed: a caller may have less time than an answer takes
)

func newWatcher() *watcher { return &watcher{shares: map[*sharedConn]struct{}{}} }

// began is the origin of moments, which are in ns and do not jump with the clock.
var began = time.Now()

func moment() int64 { return int64(time.Since(began)) }

// enter begins a call. There is one at a time.
func (w *watcher) enter(c *deadline) {
	w.busy.Store(nil)
	w.now.Store(c)
	if !w.running.Load() && w.running.CompareAndSwap(false, true) {
		go w.watch()
	}
}

func (w *watcher) leave() { w.now.Store(nil) }

// watch closes the connection when the context of a call was over at two ticks: after the first,
// the call may have noticed itself.
func (w *watcher) watch() {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var over *deadline
	for idle := 0; ; {
		<-tick.C
		c := w.now.Load()
		switch {
		case c == nil:
			if idle++; idle > idleTicks {
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

// begin records that a connection is being made for the command of ctx. If others will share it,
// they wait for it meanwhile: see conn.aside. The caller calls made when the server has sent
// something, or never will.
func (w *watcher) begin(ctx context.Context) (made func()) {
	if call, _ := ctx.Value(callKey{}).(*deadline); call == nil || call.alone {
		return func() {}
	}
	w.making.Add(1)
	return sync.OnceFunc(func() { w.making.Add(-1) })
}

// adopt makes c a connection that the watcher may close. A connection that was made for a command
// and has received nothing by the end of the command's time, not even the answer to HELLO, is
// closed then: rueidis would block the caller until its own timeout. Of connections that are made
// for no command the first is shared, unless own is true.
func (w *watcher) adopt(ctx context.Context, c net.Conn, own bool, made func()) net.Conn {
	call, _ := ctx.Value(callKey{}).(*deadline)
	if call != nil && call.alone {
		return &soloConn{c, w}
	}
	s := &sharedConn{Conn: c, watcher: w, commands: call != nil || !own && !w.opened.Load(), made: made}
	w.mu.Lock()
	w.shares[s] = struct{}{}
	w.mu.Unlock()
	if call != nil && call.ends {
		time.AfterFunc(time.Until(call.at), func() {
			if s.silent() {
				_ = s.Close()
			}
		})
	}
	return s
}

// timedOut closes the connections that have been silent for most of the time since a moment, the
// start of a command that has timed out.
func (w *watcher) timedOut(since int64) {
	now := moment()
	latest := now - max((now-since)/2, int64(silence))
	var silent []*sharedConn
	w.mu.Lock()
	for s := range w.shares {
		if s.owes(since, latest) {
			silent = append(silent, s)
		}
	}
	w.mu.Unlock()
	for _, s := range silent {
		_ = s.Close()
	}
}

// owes reports whether an answer has been due since latest or longer, and nothing was received. If
// that is uncertain, it counts only for requests written after since.
func (s *sharedConn) owes(since, latest int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received < s.asked && s.asked <= latest || s.overlap >= since && s.received <= latest
}

// silent reports whether nothing was ever received.
func (s *sharedConn) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received == 0
}

// Write implements net.Conn.
func (s *sharedConn) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.wrote = moment()
	if s.asked <= s.received {
		s.asked = s.wrote
	}
	s.mu.Unlock()
	return s.Conn.Write(b)
}

// Read implements net.Conn.
func (s *sharedConn) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.mu.Lock()
		s.overlap = 0
		if s.wrote > s.asked && s.wrote > s.received {
			s.overlap = s.wrote
		}
		if s.received == 0 {
			if s.commands && !s.closed {
				s.watcher.made.Add(1)
			}
			s.made()
		}
		s.received = moment()
		s.mu.Unlock()
	}
	return n, err
}

// Close implements net.Conn.
func (s *sharedConn) Close() error {
	s.watcher.mu.Lock()
	delete(s.watcher.shares, s)
	s.watcher.mu.Unlock()
	s.mu.Lock()
	if s.commands && s.received != 0 && !s.closed {
		s.watcher.made.Add(-1)
	}
	s.closed = true
	s.mu.Unlock()
	s.made()
	return s.Conn.Close()
}

// Write implements net.Conn.
func (l *soloConn) Write(b []byte) (int, error) {
	l.watcher.busy.Store(l)
	return l.Conn.Write(b)
}
