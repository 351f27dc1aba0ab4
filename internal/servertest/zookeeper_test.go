package servertest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// zkSession asks for a session of a minute, or for one that is there, and returns its number and
// password, 0 where there is none such.
func zkSession(s *servertest.Server, id uint64, password []byte) (uint64, []byte, error) {
	c, err := net.DialTimeout("tcp", s.Addr(), 10*time.Second)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, 12, 64)                                            // the protocol's version and the last change that was seen
	b = binary.BigEndian.AppendUint32(b, 60_000)                         // ms
	b = binary.BigEndian.AppendUint64(b, id)                             // 0 for a new one
	b = append(binary.BigEndian.AppendUint32(b, 16), password[:16]...)   // its password
	b = append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) // behind its length
	if _, err := c.Write(b); err != nil {
		return 0, nil, err
	}
	answer := make([]byte, 4+4+4+8+4+16)
	if _, err := io.ReadFull(c, answer); err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint64(answer[12:]), answer[24:], nil
}

func newZKSession(t *testing.T, s *servertest.Server) (uint64, []byte) {
	t.Helper()
	id, password, err := zkSession(s, 0, make([]byte, 16))
	if err != nil || id == 0 {
		t.Fatalf("a new session: %d, %v", id, err)
	}
	return id, password
}

// mustServe insists on what a server says it is.
func mustServe(t *testing.T, s *servertest.Server, want string) {
	t.Helper()
	if mode, err := s.Serves(); mode != want || err != nil {
		t.Errorf("it is %q, %v, want %q", mode, err, want)
	}
}

func TestZooKeeperKeepsItsDataUnlessItLosesIt(t *testing.T) {
	t.Parallel()
	s := servertest.ZooKeeper(t)
	mustServe(t, s, "standalone")
	id, password := newZKSession(t, s)
	for _, c := range []struct {
		end  func() error
		lose bool
	}{{s.Stop, false}, {s.Kill, false}, {s.Kill, true}} {
		if err := s.LoseData(); err == nil {
			t.Error("a server that runs has lost its data")
		}
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
		if mode, err := s.Serves(); err == nil {
			t.Errorf("a server that was ended is %s", mode)
		}
		if c.lose {
			if err := s.LoseData(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, _, err := zkSession(s, id, password); err != nil || c.lose != (got == 0) {
			t.Errorf("the session is %#x, %v, want %#x; data lost: %v", got, err, id, c.lose)
		}
	}
}

func TestZooKeeperIsPaused(t *testing.T) {
	t.Parallel()
	s := servertest.ZooKeeper(t)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if mode, err := s.Serves(); err == nil {
		t.Errorf("a server that is paused says that it is %s", mode)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	newZKSession(t, s)
}

func TestZooKeeperTakesArgumentsAndCleansUp(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartZooKeeper(t.Context(), servertest.Options{Args: []string{"tickTime=150", "-Dznode.container.checkIntervalMs=777"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"minSessionTimeout set to 300 ms", "Using checkIntervalMs=777"} {
		if log := s.Log(); !strings.Contains(log, want) {
			t.Errorf("its log does not say %q:\n%s", want, log)
		}
	}
	if want := "zk://" + s.Addr(); s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	if s, err := servertest.StartZooKeeper(t.Context(), servertest.Options{TLS: true}); err == nil {
		t.Errorf("%v speaks TLS", s)
	}
}

// A session lives on with any majority, and nobody serves without one.
func TestEnsembleServesByMajority(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e := servertest.ZooKeeperEnsemble(t, 3)
	for _, s := range e.Members {
		if !strings.Contains(e.URL(), s.Addr()) {
			t.Errorf("%s is not in %s", s.Addr(), e.URL())
		}
	}
	first, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id, password := newZKSession(t, first)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	second, err := e.Leader(ctx)
	if err != nil || second == first {
		t.Fatalf("after %v was killed %v leads, %v", first, second, err)
	}
	if got, _, err := zkSession(second, id, password); got != id || err != nil {
		t.Errorf("at the next leader the session is %#x, %v, want %#x", got, err, id)
	}
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	var third *servertest.Server
	for _, s := range e.Members {
		if s != first && s != second {
			third = s
		}
	}
	for mode, err := third.Serves(); err == nil; mode, err = third.Serves() {
		if ctx.Err() != nil {
			t.Fatalf("alone it still is %s", mode)
		}
	}
	if err := second.LoseData(); err != nil {
		t.Fatal(err)
	}
	if err := second.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := e.Await(ctx); err != nil {
		t.Fatal(err)
	}
	if got, _, err := zkSession(second, id, password); got != id || err != nil {
		t.Errorf("at a member that had lost its data the session is %#x, %v, want %#x", got, err, id)
	}
}

func TestEnsembleRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for members, o := range map[int]servertest.Options{0: {}, 3: {Port: 1}} {
		if got, err := servertest.StartEnsemble(t.Context(), members, o); err == nil {
			t.Errorf("%d members with %+v: %v", members, o, got)
		}
	}
}
