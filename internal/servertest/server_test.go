package servertest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// said returns the reply to a command that has to succeed.
func said(t *testing.T, s *servertest.Server, args ...string) string {
	t.Helper()
	got, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return got
}

func TestStartedServerAnswers(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	if got := said(t, s, "PING"); got != "PONG" {
		t.Errorf("PING: %q", got)
	}
	if want := "redis://" + s.Addr(); s.URL() != want || s.Addr() != "127.0.0.1:"+strconv.Itoa(s.Port()) {
		t.Errorf("address %s, URL %s, port %d", s.Addr(), s.URL(), s.Port())
	}
	if got := said(t, s, "INFO", "server"); !strings.Contains(got, "process_id:"+strconv.Itoa(s.Pid())+"\r\n") {
		t.Errorf("pid %d, but the server says:\n%s", s.Pid(), got)
	}
	if got := said(t, s, "CONFIG", "GET", "maxmemory-policy"); got != "maxmemory-policy\nnoeviction" {
		t.Errorf("CONFIG GET maxmemory-policy: %q", got)
	}
	for _, c := range []struct{ command, want string }{
		{"SET a 1", "OK"},
		{"GET a", "1"},
		{"GET b", "(nil)"},
		{"INCRBY a 41", "42"},
		{"MGET a b a", "42\n(nil)\n42"},
		{"KEYS x*", ""},
		{"COMMAND INFO nosuch", "(nil)"},
	} {
		if got := said(t, s, strings.Fields(c.command)...); got != c.want {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
	got, err := s.Do("LPUSH", "a", "x")
	if refusal := servertest.Error(""); !errors.As(err, &refusal) || !strings.HasPrefix(string(refusal), "WRONGTYPE ") {
		t.Errorf("LPUSH on a string: %q, %v", got, err)
	}
}

func TestStoppedAndKilledServersComeBackWithTheirData(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, "--appendonly", "yes")
	said(t, s, "SET", "kept", "yes")
	for _, end := range []struct {
		name string
		f    func() error
	}{
		{"Stop", s.Stop}, {"Kill", s.Kill}, {"Restart alone", func() error { return nil }},
	} {
		pid := s.Pid()
		if err := end.f(); err != nil {
			t.Fatalf("%s: %v", end.name, err)
		}
		if end.name != "Restart alone" {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s: process %d: %v, want it to be gone", end.name, pid, err)
			}
			if _, err := s.Do("PING"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s: PING: %v, want it to be refused", end.name, err)
			}
			if err := errors.Join(s.Stop(), s.Kill()); err != nil {
				t.Errorf("%s: ending it again: %v", end.name, err)
			}
			if s.Pause() == nil || s.Resume() == nil {
				t.Errorf("%s: a server that is not running can be paused", end.name)
			}
		}
		port := s.Port()
		if err := s.Restart(t.Context()); err != nil {
			t.Fatalf("after %s: %v", end.name, err)
		}
		if s.Port() != port || s.Pid() == pid {
			t.Errorf("after %s: port %d, process %d, want port %d and not process %d", end.name, s.Port(), s.Pid(), port, pid)
		}
		if got := said(t, s, "GET", "kept"); got != "yes" {
			t.Errorf("after %s: the key is %q", end.name, got)
		}
	}
}

func TestPausedServerAnswersWhenResumed(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatalf("the port of a paused server is open, but: %v", err)
	}
	defer c.Close()
	answer := make(chan string, 1)
	go func() {
		b := make([]byte, 100)
		_, _ = c.Write([]byte("PING\r\n"))
		n, _ := c.Read(b)
		answer <- string(b[:n])
	}()
	select {
	case got := <-answer:
		t.Fatalf("a paused server answered %q", got)
	case <-time.After(20 * time.Millisecond):
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got != "+PONG\r\n" {
		t.Errorf("a resumed server answered %q", got)
	}

	// Stop, Restart and Close reach a paused one, too.
	for _, end := range []func() error{s.Stop, func() error { return s.Restart(t.Context()) }, s.Close} {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	own, err := servertest.Start(t.Context(), servertest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	named, err := servertest.Start(t.Context(), servertest.Options{Dir: dir, Args: []string{"--appendonly", "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	if named.Dir() != dir {
		t.Errorf("its folder is %s, want %s", named.Dir(), dir)
	}
	for range 2 {
		if err := errors.Join(own.Close(), named.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(own.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of its own is still there: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		t.Errorf("the folder that the caller named has %d entries (%v), want its files", len(entries), err)
	}
}

func TestStartSaysWhyNot(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		o    servertest.Options
		want string
	}{
		{"taken port", t.Context(), servertest.Options{Port: s.Port()}, "Address already in use"},
		{"bad option", t.Context(), servertest.Options{Args: []string{"--nosuch", "x"}}, "Bad directive"},
		{"no time", over, servertest.Options{}, "context canceled"},
	} {
		got, err := servertest.Start(c.ctx, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v with error %v, want %q", c.name, got, err, c.want)
		}
		if err == nil {
			_ = got.Close()
		}
	}
}

func TestMissingServerNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := servertest.Start(t.Context(), servertest.Options{})
	if err == nil || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("error %v, want one that says what to install", err)
	}
}

// The port of a server that is down is nobody else's.
func TestAServerKeepsItsPortWhileItIsDown(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	mark, err := net.ListenPacket("udp4", s.Addr()) // see wire.Loopback
	if err == nil {
		_ = mark.Close()
		t.Error("somebody else can have the port of a server that is to be restarted")
	}
}
