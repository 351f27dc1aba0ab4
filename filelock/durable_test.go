//go:build linux || darwin

package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

func TestVersion_NewerOnesAreRefused(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	c := mutexOf("n")
	acquire(t, s, c)
	release(t, s, c)
	bump := func(path string, at int64) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte{layout.Major + 1}, at); err != nil {
			t.Fatal(err)
		}
	}
	bump(d.Key("n"), 8)
	before, err := os.ReadFile(d.Key("n"))
	if err != nil {
		t.Fatal(err)
	}
	_, s2 := openAt(t, dir, long)
	_, err = s2.Acquire(t.Context(), mutexOf("n"))
	if !errors.Is(err, layout.ErrNewer) || !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "use the newer version") {
		t.Errorf("a newer record: %v", err)
	}
	if after, err := os.ReadFile(d.Key("n")); err != nil || string(after) != string(before) {
		t.Errorf("a newer record was changed: %v", err)
	}
	bump(filepath.Join(dir, "floor"), 8)
	if d, err := New(dir, nil); !errors.Is(err, layout.ErrNewer) || !strings.Contains(err.Error(), "use the newer version") {
		if err == nil {
			d.Close(t.Context())
		}
		t.Errorf("a newer store: %v", err)
	}
	bump(filepath.Join(dir, "floor"), 8)
	f, err := os.OpenFile(filepath.Join(dir, "floor"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{layout.Major}, 8); err != nil {
		t.Fatal(err)
	}
}

// rebooted is a machine after another boot, whose clock shows wall.
func rebooted(boot string, wall time.Time) machine.System {
	sys := machine.Host
	began := time.Now()
	sys.BootID = func() (string, error) { return boot, nil }
	sys.WallClock = func() time.Time { return wall.Add(time.Since(began)) }
	return sys
}

// After a reboot every claim is void at once, and tokens go on growing although the clock has come back far behind and
// the records are gone or torn.
func TestReboot_TokensGrow(t *testing.T) {
	dir := storeIn(t)
	wall := time.Now()
	var last [3]uint64
	for boot := range 5 {
		d, err := newDriver(dir, nil, rebooted(fmt.Sprint("boot", boot), wall))
		if err != nil {
			t.Fatal(err)
		}
		s := openSession(t, d, long)
		for i := range last {
			c := mutexOf(fmt.Sprint("n", i))
			g := acquire(t, s, c)
			if !g.Held || g.Fence <= last[i] {
				t.Fatalf("boot %d: held %v, token %d, want more than %d, which was handed out before the reboot", boot, g.Held, g.Fence, last[i])
			}
			last[i] = g.Fence + driver.Stride - 1
		}
		// The power goes: nobody released anything, and one record is half written.
		d.die()
		if err := os.WriteFile(d.Key("n1"), []byte("half a rec"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.Key("n2"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		wall = wall.Add(-24 * time.Hour)
	}
}

// What is on disk is always above every token that was handed out, and that costs a sync a minute at most.
func TestFloor_IsAheadAndRarelySynced(t *testing.T) {
	var ahead atomic.Int64
	sys := machine.Host
	sys.WallClock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	d, err := newDriver(storeIn(t), nil, sys)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	s := openSession(t, d, long)
	before := d.Stats().Syncs
	const minutes = 20
	for range minutes * 60 {
		c := mutexOf("n")
		g := acquire(t, s, c)
		disk := onDisk(t, d)
		if g.Fence+driver.Stride-1 > disk {
			t.Fatalf("token %d is in use, the floor on disk is %d", g.Fence+driver.Stride-1, disk)
		}
		release(t, s, c)
		ahead.Add(int64(time.Second))
	}
	if n := d.Stats().Syncs - before; n > minutes+2 {
		t.Errorf("%d syncs in %d minutes", n, minutes)
	}
}

// onDisk returns the floor as a reboot would find it.
func onDisk(t *testing.T, d *Driver) uint64 {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(d.st.Dir, "floor"))
	if err != nil {
		t.Fatal(err)
	}
	return layout.HighestSlot(page)
}

// A write of the record fails, as on a full or broken disk: the caller hears it, the line is as before, and what was in
// memory is not believed.
func TestWrite_FailureChangesNothing(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	_, s2 := openAt(t, dir, long)
	before := mutexOf("n")
	acquire(t, s, before)
	release(t, s, before)
	k, err := d.names.get("n")
	if err != nil {
		t.Fatal(err)
	}
	defer d.names.put(k)
	f, err := k.use(false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Unref()
	readOnly, err := os.Open(d.Key("n"))
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	works := f.Fd
	f.Fd = int(readOnly.Fd())
	c := mutexOf("n")
	g, err := s.Acquire(t.Context(), c)
	if err == nil || g.Held || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
		t.Errorf("held %v, %v: want an error that says nothing for certain", g.Held, err)
	}
	f.Fd = works
	theirs := mutexOf("n")
	if g := acquire(t, s2, theirs); !g.Held {
		t.Error("the failed write has left something behind")
	}
	if held, err := s.Release(t.Context(), c); held || err != nil {
		t.Errorf("release of what was not written: held %v, %v", held, err)
	}
	release(t, s2, theirs)
}

// No token is handed out while the floor cannot be made durable; the line goes on as soon as it can.
func TestFloor_NoTokenWithoutIt(t *testing.T) {
	var ahead atomic.Int64
	sys := machine.Host
	sys.WallClock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	d, err := newDriver(storeIn(t), nil, sys)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	s := openSession(t, d, long)
	first, second := mutexOf("n"), mutexOf("n")
	acquire(t, s, first)
	acquire(t, s, second)
	works := d.floor.File
	readOnly, err := os.Open(works.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	d.floor.File = readOnly
	ahead.Store(int64(time.Hour))
	if g, err := s.Acquire(t.Context(), mutexOf("other")); err == nil || g.Held {
		t.Errorf("a token without a floor: held %v, %v", g.Held, err)
	}
	release(t, s, first) // the claim leaves all the same
	if g := acquire(t, s, second); g.Held {
		t.Errorf("the next one has token %d without a floor", g.Fence)
	}
	d.floor.File = works
	if _, err := hold(within(t, soon), s, second); err != nil {
		t.Errorf("the floor can be written again: %v", err)
	}
	release(t, s, second)
}

// A token costs no memory: what might be said of the floor, were it cut, is put together once.
func TestFloor_ATokenPutsNoErrorTogether(t *testing.T) {
	d, err := New(storeIn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	now := time.Now()
	stored := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		_, stored, err = d.floor.Draw(stored, now)
		if _, ok := d.floor.Removed(); err != nil || !ok {
			t.Fatal(err, ok)
		}
	}); n > 1 {
		t.Errorf("a token takes %v allocations", n)
	}
}
