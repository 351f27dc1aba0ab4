package redistest

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// asks reports whether a script is an Acquire: those name the owner.
func asks(script []byte) bool { return bytes.Contains(script, []byte(`{"o":`)) }

// tryCutAndReleased has the connection of an Acquire end, holds back the Acquire that is sent once
// more, and has its caller give up and release. The Release stays behind it.
func tryCutAndReleased(t *testing.T, open Opening) {
	t.Helper()
	e, cut := cutting(t, open)
	c := exclusive("name", true)
	again, pass := make(chan struct{}), make(chan struct{})
	letPass := sync.OnceFunc(func() { close(pass) })
	defer letPass()
	var mu sync.Mutex
	var acquires, overtook int
	through := false
	cut.w.Filter(wire.Requests, func(frame []byte) bool {
		passes := cut.request(frame)
		if !bytes.Contains(bytes.ToUpper(frame[:min(len(frame), 24)]), []byte("EVAL")) {
			return passes
		}
		mu.Lock()
		if asks(frame) {
			acquires++
		} else if acquires == 2 && !through {
			overtook++
		}
		second := acquires == 2 && asks(frame)
		mu.Unlock()
		if second {
			close(again)
			<-pass
		}
		return passes
	})
	cut.arm(1, false)
	ctx, cancel := context.WithCancel(t.Context())
	acquired := make(chan error, 1)
	go func() {
		_, err := e.session.Acquire(ctx, c)
		acquired <- err
	}()
	Receive(t, limit, "the Acquire is sent once more", again)
	cancel()
	if err := Receive(t, limit, "Acquire returns when its caller gives up", acquired); err == nil {
		t.Error("the Acquire was answered although nothing comes through")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := e.session.Release(ctx, c); err == nil {
		t.Error("a Release was answered while its Acquire is on its way")
	}
	mu.Lock()
	if overtook > 0 {
		t.Error("the Release has overtaken the Acquire that was sent once more")
	}
	through = true
	mu.Unlock()
	letPass()
	if _, err := e.session.Release(t.Context(), c); err != nil {
		t.Errorf("Release: %v; want no error", err)
	}
	Until(t, limit, "the name is not free", func() bool { return e.line("name") == 0 })
}

// tryLateArrival has the first request of an Acquire that was sent once more arrive when the claim
// has been released, as out of the buffer of a proxy whose client has gone.
func tryLateArrival(t *testing.T, open Opening) {
	t.Helper()
	e, cut := cutting(t, open)
	c := exclusive("name", true)
	cut.arm(1, false)
	e.acquire(e.session, "a free name", c, true)
	first := cut.first()
	e.mend(cut)
	e.release(e.session, "a claim that is held", c, true)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", e.s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(first)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1024)
	if n, err := conn.Read(answer); err != nil || strings.HasPrefix(string(answer[:n]), "-") {
		t.Fatalf("the late request was answered %q, %v", answer[:n], err)
	}
	Until(t, limit/3, "a request that arrived late has taken the lock for nobody", func() bool { return e.line("name") == 0 })
}
