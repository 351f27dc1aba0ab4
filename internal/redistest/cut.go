package redistest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// cutter ends the connection of the next scripts that a driver runs.
type cutter struct {
	w *wire.Wire

	mu      sync.Mutex
	cuts    int // scripts whose connection is still to be ended
	after   bool
	reply   bool          // to be lost, with the connection
	scripts []string      // sent since the last arm
	over    chan struct{} // closed when the last cut has reached every connection
}

func newCutter(w *wire.Wire) *cutter {
	c := &cutter{w: w, over: make(chan struct{})}
	close(c.over)
	w.Filter(wire.Requests, c.request)
	w.Filter(wire.Replies, c.answer)
	return c
}

// arm has the connections of the next scripts end: before the server has each of them, or after it
// has carried it out.
func (c *cutter) arm(cuts int, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts, c.after, c.reply, c.scripts = cuts, after, false, nil
}

// sent returns how many scripts have left since the last arm.
func (c *cutter) sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.scripts)
}

// first returns the script that left first since the last arm.
func (c *cutter) first() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts[0]
}

// cut resets every connection. What is sent meanwhile waits, so that nothing is carried out by one
// that is reset next, and what is answered is lost: else the reply to a script gets through when it
// was the one to another connection that began the cut.
func (c *cutter) cut() {
	over := make(chan struct{})
	c.over = over
	go func() {
		c.w.Cut()
		close(over)
	}()
}

func (c *cutter) request(frame []byte) bool {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	<-over
	c.mu.Lock()
	defer c.mu.Unlock()
	if head := bytes.ToUpper(frame[:min(len(frame), 24)]); !bytes.Contains(head, []byte("EVAL")) {
		return true
	}
	c.scripts = append(c.scripts, string(frame))
	if c.cuts == 0 {
		return true
	}
	c.cuts--
	if c.after {
		c.reply = true
		return true
	}
	c.cut()
	return false
}

func (c *cutter) answer(frame []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.over:
	default:
		return false // the cut has yet to reach this connection: what is answered there meanwhile is lost as well
	}
	if !c.reply || !noMessage(frame) {
		return true
	}
	c.reply = false
	c.cut()
	return false
}

// cutting is a driver whose scripts are known to the server, over a wire with a cutter.
func cutting(t *testing.T, open Opening) (*ended, *cutter) {
	t.Helper()
	s := servertest.Redis(t)
	e := newEnded(t, s, wire.New(t, s.Addr()), open)
	for _, session := range []driver.Session{e.session, e.rival} { // every script once, so that none is sent as text
		c, next := exclusive("used", true), exclusive("used", true)
		e.acquire(session, "a name", c, true)
		e.acquire(session, "a name, behind itself", next, false)
		if _, err := session.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.release(session, "a name", c, true)
		Until(t, limit, "the name is not handed on", func() bool {
			g, err := session.Wait(t.Context(), next)
			return err != nil || g.Held
		})
		e.release(session, "a name, behind itself", next, true)
		e.line("used")
	}
	return e, newCutter(e.w)
}

// tryCuts has the connection end while a request of each kind is under way, before the server has
// it or after that has carried it out. Who asked is answered as if nothing had been, but for a
// Release that may have been carried out: that its claim was held until then nobody can say.
func tryCuts(t *testing.T, open Opening) {
	t.Helper()
	for what, after := range map[string]bool{"before the server has it": false, "before the answer is there": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e, cut := cutting(t, open)
			once := func(what string) {
				t.Helper()
				if n := cut.sent(); n < 2 || n > 2 && !after {
					t.Errorf("%s: %d scripts were sent, want 2: the one that was lost, and once more", what, n)
				}
				e.mend(cut)
			}
			c := exclusive("free", true)
			cut.arm(1, after)
			g := e.acquire(e.session, "a free name", c, true)
			once("Acquire of a free name")
			if again := e.acquire(e.session, "the same name once more", c, true); again.Fence != g.Fence {
				t.Errorf("the claim has token %d and then %d, want the same", g.Fence, again.Fence)
			}
			cut.arm(1, after)
			e.renew("a claim that is held")
			once("Renew")
			queued, try := exclusive("free", true), exclusive("free", false)
			cut.arm(1, after)
			e.acquire(e.rival, "the rival's, behind", queued, false) // is not cut, and has all scripts sent elsewhere
			cut.arm(1, after)
			e.acquire(e.session, "a name that is held, at once or not", try, false)
			e.mend(cut)
			if n := e.line("free"); n != 2 {
				t.Errorf("%d stand at the name, want the holder and the rival", n)
			}
			e.leave(cut, c, after)
			e.release(e.rival, "the rival", queued, true)
			if n := e.line("free"); n != 0 {
				t.Errorf("%d stand at the name, want nobody", n)
			}
		})
	}
}

// mend has a client that has several connections meet those that were cut.
func (e *ended) mend(cut *cutter) {
	e.t.Helper()
	cut.arm(0, false)
	for range 40 {
		e.line("used")
	}
}

// leave releases a held claim over a connection that is cut.
func (e *ended) leave(cut *cutter, c driver.Claim, after bool) {
	e.t.Helper()
	cut.arm(1, after)
	held, err := e.session.Release(e.t.Context(), c)
	if !after && (err != nil || !held) {
		e.t.Errorf("Release: was held %v, %v; want true and no error: the first request never arrived", held, err)
	}
	if after && err == nil && !held {
		e.t.Error("Release says that the claim was not held, want an error where nobody knows")
	}
	if after && (errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)) {
		e.t.Errorf("Release: %v; want an error that leaves the outcome open", err)
	}
	e.mend(cut)
	if _, err := e.session.Release(e.t.Context(), c); err != nil {
		e.t.Errorf("the second Release: %v; want no error", err)
	}
	Until(e.t, limit, "whoever waited is not let in", func() bool {
		l, err := e.rival.Renew(e.t.Context())
		if err != nil || len(l.Lost) > 0 {
			e.t.Fatalf("the rival: %+v, %v", l, err)
		}
		return e.line(c.Name) == 1
	})
}

// tryCutsInARow has the connection end twice in a row, or end and no other be made. Then the call
// says that the outcome is open, and is not sent a third time.
func tryCutsInARow(t *testing.T, open Opening) {
	t.Helper()
	for what, call := range map[string]func(ctx context.Context, e *ended, c driver.Claim) error{
		"Acquire": func(ctx context.Context, e *ended, c driver.Claim) error {
			_, err := e.session.Acquire(ctx, c)
			return err
		},
		"Renew": func(ctx context.Context, e *ended, _ driver.Claim) error {
			_, err := e.session.Renew(ctx)
			return err
		},
		"Release": func(ctx context.Context, e *ended, c driver.Claim) error {
			_, err := e.session.Release(ctx, c)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e, cut := cutting(t, open)
			c := exclusive("name", true)
			if what != "Acquire" {
				e.acquire(e.session, "a free name", c, true)
			}
			open := func(err error) {
				t.Helper()
				if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
					t.Errorf("%v; want an error that leaves the outcome open", err)
				}
			}
			cut.arm(1000, true)
			open(call(t.Context(), e, c))
			if n := cut.sent(); n != 2 {
				t.Errorf("%d scripts were sent, want 2: it is sent once more, and not again", n)
			}
			cut.arm(0, false)

			e.w.Filter(wire.Requests, func(frame []byte) bool {
				if bytes.Contains(bytes.ToUpper(frame[:min(len(frame), 24)]), []byte("EVAL")) {
					e.w.Refuse()
					go e.w.Cut()
					return false
				}
				return true
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			open(call(ctx, e, c)) // that no connection can be made says nothing of the first request
			e.w.Filter(wire.Requests, nil)
			if err := e.w.Accept(); err != nil {
				t.Fatal(err)
			}
			if _, err := e.session.Release(t.Context(), c); err != nil {
				t.Errorf("Release: %v; want no error", err)
			}
			if n := e.line("name"); n != 0 {
				t.Errorf("%d stand at the name, want nobody", n)
			}
		})
	}
}

// tryCutWhileListening has every connection end when one asks for a channel, before the server has
// that: the first of a process, and then the one that has listened for long. Who wants to wait
// notices nothing.
func tryCutWhileListening(t *testing.T, open Opening) {
	t.Helper()
	t.Run("while it asks to listen", func(t *testing.T) {
		t.Parallel()
		s := servertest.Redis(t)
		e := newEnded(t, s, wire.New(t, s.Addr()), open)
		var cuts atomic.Int64
		e.w.Filter(wire.Requests, func(frame []byte) bool {
			if bytes.Contains(bytes.ToUpper(frame[:min(len(frame), 24)]), []byte("SUBSCRIBE")) && cuts.Add(-1) >= 0 {
				go e.w.Cut()
				return false
			}
			return true
		})
		for _, name := range []string{"first", "next"} {
			holds, waits := exclusive(name, false), exclusive(name, true)
			e.acquire(e.rival, "the rival", holds, true)
			cuts.Store(1)
			e.acquire(e.session, "a name that is held, to wait", waits, false)
			e.release(e.rival, "the rival", holds, true)
			Until(t, limit, "the name is not handed on", func() bool {
				g, err := e.session.Wait(t.Context(), waits)
				if err != nil {
					t.Fatalf("Wait: %v; want no error", err)
				}
				return g.Held
			})
			e.release(e.session, "what was waited for", waits, true)
		}
	})
}
