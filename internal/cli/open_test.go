//go:build linux

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// away is a port at which a server is not there yet: who comes is hung up on. come yields each of
// them.
func away(t *testing.T) (port int, come <-chan struct{}, leave func()) {
	t.Helper()
	l, err := net.Listen("tcp", servertest.Nobody(t)) // the port is the test's also when it has left
	if err != nil {
		t.Fatal(err)
	}
	leave = func() { _ = l.Close() }
	t.Cleanup(leave)
	all := make(chan struct{}, 10_000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all <- struct{}{}
			_ = c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, all, leave
}

func comes(t *testing.T, come <-chan struct{}) {
	t.Helper()
	select {
	case <-come:
	case <-time.After(guardtest.Patience()):
		t.Fatal("nobody tries")
	}
}

// started is a run that has begun, and what it says.
type started struct {
	*exec.Cmd
	said bytes.Buffer
}

func runs(t *testing.T, port int, words ...string) *started {
	t.Helper()
	t.Helper()
	s := &started{}
	s.Cmd = exec.Command("interlock", append(append([]string{"run", "--store", fmt.Sprintf("redis://127.0.0.1:%d", port)}, words...), "job", "--", "true")...)
	s.Stderr = &s.said
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Kill() })
	return s
}

// ends insists on how a run ends, and on what it says.
func (s *started) ends(t *testing.T, status int, says ...string) {
	t.Helper()
	t.Helper()
	_ = s.Wait()
	got := s.ProcessState.ExitCode()
	if ws, ok := s.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		got = 128 + int(ws.Signal())
	}
	if got != status {
		t.Errorf("exit status %d, want %d: %s", got, status, &s.said)
	}
	for _, want := range says {
		if !strings.Contains(s.said.String(), want) {
			t.Errorf("it says %q, want %q", &s.said, want)
		}
	}
}

// Who waits for a lock waits for its store as well, as one that restarts, and gives up when the
// time is over.
func TestRun_WaitsForAStore(t *testing.T) {
	t.Parallel()
	port, come, leave := away(t)
	s := runs(t, port, "--wait", "2m")
	comes(t, come)
	comes(t, come)
	leave()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := servertest.Start(ctx, servertest.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s.ends(t, 0)
	port, _, _ = away(t)
	runs(t, port, "--wait", "1s").ends(t, 69, "no answer within 1s, asked ", fmt.Sprintf("127.0.0.1:%d", port))
}

// Who does not wait tries once.
func TestRun_TriesAStoreOnce(t *testing.T) {
	t.Parallel()
	port, come, _ := away(t)
	runs(t, port, "--try").ends(t, 69, fmt.Sprintf("127.0.0.1:%d", port))
	if n := len(come); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}

// A signal ends the wait for a store, which there is also where nobody has said how long.
func TestRun_IsInterruptedWhileItOpens(t *testing.T) {
	t.Parallel()
	port, come, _ := away(t)
	s := runs(t, port)
	comes(t, come)
	comes(t, come)
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends(t, 128+int(syscall.SIGTERM))
}
