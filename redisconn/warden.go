package redisconn

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// warden lets a caller go when its context ends while it waits for an answer by itself.
//
// A command that is alone has a connection of its own, on which the calling goroutine writes and reads itself: half the
// time of handing it to a writer and a reader. But then nothing but an answer or a deadline wakes the caller. So a warden
// looks every few milliseconds whether the context of that call is over, and then closes the connection. That is rare: an
// answer takes far less than the first look, so it needs a network or a server that stands still, and a caller that gives
// up just then.
//
// Commands that share a connection are rueidis' to abandon, and it keeps the connection, for seconds. One that died unnoticed
// would take every retry as well. So when the time of a command is over, each connection is closed from which nothing has come
// for half of that time, although an answer was due. One that is slow is not among them while anything comes, and one on which
// nothing was asked is not, however long it is quiet. On a Cluster it may be another master's than the command's: it has owed an
// answer for as long.
type warden struct {
	now     atomic.Pointer[deadline] // of the call under way, if any
	busy    atomic.Pointer[line]     // that it has written to: the others are idle, and rueidis would use them closed
	running atomic.Bool

	opened atomic.Bool  // the client has its first connection
	making atomic.Int32 // connections for commands that share them, until the server has said something
	made   atomic.Int32 // those that are open since then

	mu     sync.Mutex
	shares map[*shared]struct{} // that are open
}

// line is a connection for commands that are alone.
type line struct {
	net.Conn
	warden *warden
}

// shared is any other connection: one that commands share, or one that listens.
type shared struct {
	net.Conn
	warden *warden

	commands bool // it is one that commands share

	mu      sync.Mutex
	closed  bool
	made    func() // called once, when something has come or the connection is closed
	asked   int64  // the moment when the first bytes left after some had come
	wrote   int64  // the moment when the last bytes left
	heard   int64  // the moment when the last bytes came; 0 for never
	overlap int64  // the moment when the last bytes left before that, if others had left before them: what came may be the answer to those
}

const (
	look = 5 * time.Millisecond
	rest = 200 // looks without a call until the warden goes

	silence = 50 * time.Millisecond // of a shared connection, at least, until it is closed: a caller may have less time than an answer takes
)

func newWarden() *warden { return &warden{shares: map[*shared]struct{}{}} }

// began is where moments are counted from, in ns, so that they do not jump with the clock.
var began = time.Now()

func moment() int64 { return int64(time.Since(began)) }

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

// begin says that a connection is being made for the command of ctx. Where others are going to share it, they wait for it meanwhile: see conn.aside. The
// result is called when the server has said something, or never will.
func (w *warden) begin(ctx context.Context) (made func()) {
	if call, _ := ctx.Value(callKey{}).(*deadline); call == nil || call.alone {
		return func() {}
	}
	w.making.Add(1)
	return sync.OnceFunc(func() { w.making.Add(-1) })
}

// adopt makes c a connection that the warden may close. One that was made for a command and has brought nothing by the end of
// its time, no answer to the client's greeting, is closed then: rueidis would keep the caller until it gives up by itself. Of those that are
// made for no command the first is shared; own says that it is not.
func (w *warden) adopt(ctx context.Context, c net.Conn, own bool, made func()) net.Conn {
	call, _ := ctx.Value(callKey{}).(*deadline)
	if call != nil && call.alone {
		return &line{c, w}
	}
	s := &shared{Conn: c, warden: w, commands: call != nil || !own && !w.opened.Load(), made: made}
	w.mu.Lock()
	w.shares[s] = struct{}{}
	w.mu.Unlock()
	if call != nil && call.ends {
		time.AfterFunc(time.Until(call.at), func() {
			if s.mute() {
				_ = s.Close()
			}
		})
	}
	return s
}

// fell closes the connections that have been silent for most of the time since a moment, which is that of a command.
func (w *warden) fell(since int64) {
	now := moment()
	latest := now - max((now-since)/2, int64(silence))
	var silent []*shared
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

// owes reports whether an answer has been due since the latest moment, and nothing has come. Where that is not certain, it is
// only if the answer would be one to what has left since another moment.
func (s *shared) owes(since, latest int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard < s.asked && s.asked <= latest || s.overlap >= since && s.heard <= latest
}

// mute reports whether nothing has ever come.
func (s *shared) mute() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard == 0
}

// Write implements net.Conn.
func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.wrote = moment()
	if s.asked <= s.heard {
		s.asked = s.wrote
	}
	s.mu.Unlock()
	return s.Conn.Write(b)
}

// Read implements net.Conn.
func (s *shared) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.mu.Lock()
		s.overlap = 0
		if s.wrote > s.asked && s.wrote > s.heard {
			s.overlap = s.wrote
		}
		if s.heard == 0 {
			if s.commands && !s.closed {
				s.warden.made.Add(1)
			}
			s.made()
		}
		s.heard = moment()
		s.mu.Unlock()
	}
	return n, err
}

// Close implements net.Conn.
func (s *shared) Close() error {
	s.warden.mu.Lock()
	delete(s.warden.shares, s)
	s.warden.mu.Unlock()
	s.mu.Lock()
	if s.commands && s.heard != 0 && !s.closed {
		s.warden.made.Add(-1)
	}
	s.closed = true
	s.mu.Unlock()
	s.made()
	return s.Conn.Close()
}

// Write implements net.Conn.
func (l *line) Write(b []byte) (int, error) {
	l.warden.busy.Store(l)
	return l.Conn.Write(b)
}
