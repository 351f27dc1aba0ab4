package redisconn

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/sessions"
)

func init() { began = began.Add(-time.Hour) } // so that there are moments before a test

// quiet is a connection on which every write succeeds and every read brings a byte.
type quiet struct {
	net.Conn
	closed bool
}

func (q *quiet) Write(b []byte) (int, error) { return len(b), nil }
func (q *quiet) Read([]byte) (int, error)    { return 1, nil }
func (q *quiet) Close() error                { q.closed = true; return nil }

// When the time of a command is over, the connections are closed that have owed an answer for most
// of it, and no others: others' commands go over them.
func TestWatcherClosesWhatOwesAnAnswer(t *testing.T) {
	const ago = int64(time.Second)
	for what, c := range map[string]struct {
		steps  string // w: bytes leave, r: bytes come, each a second after the one before and the last one a second ago
		took   int64  // by the command
		closed bool
	}{
		"silent":                              {"w", ago, true},
		"silent, and asked again":             {"rww", ago, true},
		"silent for longer than the command":  {"wwwww", ago, true},
		"answered":                            {"wr", 3 * ago, false},
		"idle":                                {"", 10 * ago, false},
		"a subscription that hears":           {"wrrrr", 10 * ago, false},
		"answers that come one by one":        {"wwwrr", 10 * ago, false},
		"silent for less than half the time":  {"wrw", 3 * ago, false},
		"answered to who asked before":        {"wwr", 2 * ago, true},
		"answered to all, before the command": {"wwr", ago / 2, false},
	} {
		w, q := newWatcher(), &quiet{}
		s := w.adopt(t.Context(), q, false, func() {}).(*sharedConn) //nolint:forcetypeassert // nobody calls
		now := moment()
		for i, step := range c.steps {
			if step == 'w' {
				_, _ = s.Write(nil)
			} else {
				_, _ = s.Read(nil)
			}
			at := now - int64(len(c.steps)-i)*ago
			for _, m := range []*int64{&s.asked, &s.wrote, &s.received, &s.overlap} {
				if *m >= now {
					*m = at
				}
			}
		}
		w.timedOut(now - c.took)
		if q.closed != c.closed {
			t.Errorf("%s: a connection with the steps %q is closed: %v; want %v", what, c.steps, q.closed, c.closed)
		}
	}
}

// A command for which a connection has to be made is back by its deadline, also where the server
// accepts and says nothing.
func TestANewConnectionKeepsNobody(t *testing.T) {
	w := wire.New(t, servertest.Redis(t).Addr())
	c, err := Open(t.Context(), Config{Addrs: []string{w.Addr()}, Timeout: time.Minute, KeepAlive: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	defer w.Stall(wire.Both)()
	w.Cut()
	cmd := Command{Words: []string{"PING"}}
	for range 2 { // the first finds that the connection has ended
		done := make(chan []Reply, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			done <- c.DoAll(ctx, []Command{cmd, cmd, cmd})
		}()
		select {
		case replies := <-done:
			if replies[0].Err == nil {
				t.Error("answered by a server that says nothing")
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a command for which a connection has to be made has not returned 30 s after its deadline")
		}
	}
}

// A connection that is being made when all is closed is closed, too, whenever the server answers.
func TestAConnectionThatIsBeingMadeIsClosed(t *testing.T) {
	w := wire.New(t, servertest.Redis(t).Addr())
	opened, err := Open(t.Context(), Config{Addrs: []string{w.Addr()}, Timeout: time.Minute, KeepAlive: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	c := opened.(*conn) //nolint:forcetypeassert // Open makes no other
	heal := w.Stall(wire.Replies)
	w.Cut()
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(leave)
	go func() {
		for ctx.Err() == nil { // the first time finds that the connection has ended
			_, _ = c.Do(ctx, Command{Words: []string{"PING"}, Behind: true})
		}
	}()
	until := func(what string, met func() bool) {
		t.Helper()
		for began := time.Now(); !met(); runtime.Gosched() {
			if time.Since(began) > 30*time.Second {
				t.Fatal("not after 30s: " + what)
			}
		}
	}
	until("a connection is being made, and has asked", func() bool {
		n := w.Count()
		return c.watcher.making.Load() == 1 && n.Open == 1 && n.Replies.Held > 0
	})
	leave()
	c.Close()
	heal()
	until("no connection is open", func() bool { return w.Count().Open == 0 })
	runtime.KeepAlive(c)
}

// Nor does it keep who comes while it is being made for somebody who has more time.
func TestANewConnectionKeepsNobodyElse(t *testing.T) {
	w := wire.New(t, servertest.Redis(t).Addr())
	opened, err := Open(t.Context(), Config{Addrs: []string{w.Addr()}, Timeout: time.Minute, KeepAlive: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	c := opened.(*conn) //nolint:forcetypeassert // Open makes no other
	defer w.Stall(wire.Both)()
	w.Cut()
	cmd := Command{Words: []string{"PING"}}
	first, leave := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(leave)
	go func() {
		for first.Err() == nil { // the first time finds that the connection has ended
			c.DoAll(first, []Command{cmd, cmd, cmd})
		}
	}()
	for began := time.Now(); c.watcher.making.Load() == 0; {
		if time.Since(began) > 30*time.Second {
			t.Fatal("no connection is being made")
		}
		runtime.Gosched()
	}
	for what, ask := range asks {
		done := make(chan error, 1)
		go func() {
			done <- ask(sessions.Within(t.Context(), 100*time.Millisecond), c)
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: answered by a server that says nothing", what)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: not back 30 s after its deadline: it waits for a connection that is made for somebody else", what)
		}
	}
}

// Whoever the connection is made for goes when its context ends, long before its time is over,
// wherever it comes from.
func TestANewConnectionDoesNotKeepWhoMakesIt(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	for what, ask := range asks {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := wire.New(t, server.Addr())
			opened, err := Open(t.Context(), Config{Addrs: []string{w.Addr()}, Timeout: 90 * time.Second, KeepAlive: 90 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(opened.Close)
			c := opened.(*conn) //nolint:forcetypeassert // Open makes no other
			defer w.Stall(wire.Both)()
			w.Cut()
			for began := time.Now(); c.watcher.made.Load() > 0; { // until a command has found that the connection has ended
				if time.Since(began) > 30*time.Second {
					t.Fatal("the connection has ended, and nobody has seen it")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_ = ask(ctx, c)
				cancel()
			}
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- ask(sessions.Within(ctx, 90*time.Second), c) }()
			greets := func() bool { // while it dials, rueidis looks at the context
				n := w.Count()
				return c.watcher.making.Load() > 0 && n.Open > 0 && n.Requests.Held > 0
			}
			for began := time.Now(); !greets(); runtime.Gosched() {
				if time.Since(began) > 30*time.Second {
					t.Fatal("no connection is being made")
				}
			}
			leave()
			select {
			case err := <-done:
				if err == nil {
					t.Error("answered by a server that says nothing")
				}
			case <-time.After(30 * time.Second):
				t.Fatal("not back 30 s after its context has ended: it waits for the connection that is made for it")
			}
		})
	}
}

// asks are ways to send what shares a connection.
var asks = map[string]func(ctx context.Context, c Conn) error{
	"one": func(ctx context.Context, c Conn) error {
		_, err := c.Do(ctx, Command{Words: []string{"PING"}, Behind: true})
		return err
	},
	"all": func(ctx context.Context, c Conn) error {
		cmd := Command{Words: []string{"PING"}}
		return c.DoAll(ctx, []Command{cmd, cmd, cmd})[2].Err
	},
	"anew": func(ctx context.Context, c Conn) error {
		_, err := c.Do(ctx, Command{Words: []string{"PING"}, Fresh: true})
		return err
	},
}
