//go:build linux || darwin

package filelock

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// harness is a directory for the conformance suite.
type harness struct {
	t   *testing.T
	dir string
}

func newHarness(t *testing.T) drivertest.Harness {
	t.Helper()
	return &harness{t: t, dir: filepath.Join(t.TempDir(), "store")}
}

func (h *harness) Prefix() string     { return "suite/" }
func (h *harness) TTL() time.Duration { return time.Second }

func (h *harness) Driver(t drivertest.T) driver.Driver {
	d, err := New(h.dir, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

// Kill closes what the system closes when a process ends, and nothing else happens.
func (h *harness) Kill(_ drivertest.T, d driver.Driver) { d.(*Driver).die() }

// die is the end of a process, as the others see it.
func (d *Driver) die() {
	sessions, _ := d.end()
	for _, s := range sessions {
		d.setLocal(s.key, nil)
	}
	for _, s := range sessions {
		s.lock.Close()
		s.inbox.Close()
		s.holdings.end()
	}
	d.shut()
}

// Restart has nothing to do: there is no server.
func (h *harness) Restart(drivertest.T) {}

func (h *harness) Cannot(law string) string {
	return "a directory has no wire that could be cut: " + law + " is tried without"
}

// Deafen loses wake-ups after they were sent.
func (h *harness) Deafen(_ drivertest.T, d driver.Driver) (heal func()) {
	d.(*Driver).deaf.Store(true)
	return func() { d.(*Driver).deaf.Store(false) }
}

// End revokes the session in its file, as a reaper does.
func (h *harness) End(t drivertest.T, d driver.Driver, s driver.Spec) {
	operator := h.Driver(t).(*Driver)
	defer operator.Close(context.Background())
	p, err := operator.peers.Peer(layout.HashOf(s.ID))
	if err != nil {
		t.Fatalf("end: %v", err)
	}
	p.File.Revoke()
	p.Die()
}

func (h *harness) Calls(d driver.Driver) int { return int(d.(*Driver).Stats().RecordWrites) }

func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

// Freeze stops a worker that hammers the name.
func (h *harness) Freeze(t drivertest.T, name string) (thaw func()) {
	w := startWorker(t, task{Do: "hammer", Dir: h.dir, Name: name, TTL: time.Minute})
	w.hear(t, "ready")
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // anywhere
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("stop: %v", err)
	}
	return sync.OnceFunc(w.kill)
}

func TestConformance(t *testing.T) { drivertest.Run(t, newHarness) }

func openAt(t testing.TB, dir string, ttl time.Duration) (*Driver, driver.Session) {
	t.Helper()
	d, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d, openSession(t, d, ttl)
}

func openSession(t testing.TB, d *Driver, ttl time.Duration) driver.Session {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), Owner: driver.Owner{Name: t.Name(), PID: os.Getpid()}, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
