//go:build linux || darwin

package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
)

// doctored opens a client of a store.
func doctored(t *testing.T, dir string, sys machine.System) *interlock.Client {
	t.Helper()
	d, err := newDriver(dir, nil, sys)
	if err != nil {
		t.Fatal(err)
	}
	c, err := interlock.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = d.Close(t.Context())
	})
	return c
}

// plainDisk is this machine, whose temporary folder may be memory.
func plainDisk() machine.System {
	sys := machine.Host
	sys.InMemory = func(string) bool { return false }
	return sys
}

// A store that is well gives no finding, with leave to write neither, and nothing stays of it.
func TestDoctor_Well(t *testing.T) {
	dir := storeIn(t)
	c := doctored(t, dir, plainDisk())
	examinetest.Finds(t, "a store that is well", c, examinetest.Levels{})
	r := examinetest.Finds(t, "with leave to write", c, examinetest.Levels{}, interlock.Writing())
	said := map[string]bool{}
	for _, f := range r.Findings {
		said[f.Title] = true
	}
	if !said["disk"] || !said["flock"] || !said["rehearsal"] {
		t.Errorf("%+v; want the disk, flock and a rehearsal among them", r.Findings)
	}
	left, err := filepath.Glob(filepath.Join(dir, "sessions", layout.TestPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v stays, %v", left, err)
	}
}

// Whoever may write to the store, or to a folder above it, can take locks.
func TestDoctor_Rights(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	if err := os.Mkdir(above, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(above, "store")
	c := doctored(t, dir, plainDisk())
	for _, k := range []struct {
		path        string
		wrong, well os.FileMode
		want        examinetest.Levels
	}{
		{dir, 0o777, 0o700, examinetest.Levels{"rights": examinetest.Bad}},
		{dir, 0o720, 0o700, examinetest.Levels{"rights": examinetest.Bad}},
		{filepath.Join(dir, "locks"), 0o702, 0o700, examinetest.Levels{"rights": examinetest.Bad}},
		{above, 0o777, 0o700, examinetest.Levels{"folders above": examinetest.Bad}},
		{above, 0o777 | os.ModeSticky, 0o700, examinetest.Levels{}},
	} {
		if err := os.Chmod(k.path, k.wrong); err != nil {
			t.Fatal(err)
		}
		examinetest.Finds(t, fmt.Sprintf("%s with %v", k.path, k.wrong), c, k.want)
		if err := os.Chmod(k.path, k.well); err != nil {
			t.Fatal(err)
		}
	}
	examinetest.Finds(t, "as it was", c, examinetest.Levels{})
}

// Who owns a folder above the store may rename what is in it, and so may a group that may write there. Only root can give a folder away.
func TestDoctor_FoldersOfOthers(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	if err := os.Mkdir(above, 0o755); err != nil {
		t.Fatal(err)
	}
	c := doctored(t, filepath.Join(above, "store"), plainDisk())
	examinetest.Finds(t, "a folder of one's own", c, examinetest.Levels{})
	if os.Geteuid() != 0 {
		return
	}
	for what, k := range map[string]struct {
		user, group int
		mode        os.FileMode
		want        examinetest.Levels
	}{
		"a folder of another user":               {4711, 0, 0o755, examinetest.Levels{"folders above": examinetest.Bad}},
		"a sticky one":                           {4711, 0, 0o777 | os.ModeSticky, examinetest.Levels{"folders above": examinetest.Bad}},
		"a folder that another group may read":   {0, 4711, 0o755, examinetest.Levels{}},
		"a folder that another group may change": {0, 4711, 0o775, examinetest.Levels{"folders above": examinetest.Warn}},
	} {
		if err := errors.Join(os.Chown(above, k.user, k.group), os.Chmod(above, k.mode)); err != nil {
			t.Fatal(err)
		}
		examinetest.Finds(t, what, c, k.want)
	}
}

// What the machine says of the file system, of the room on it and of the disk is told.
func TestDoctor_TheMachine(t *testing.T) {
	has := func(r machine.Room, err error) func(*machine.System) {
		return func(s *machine.System) { s.Room = func(string) (machine.Room, error) { return r, err } }
	}
	for what, k := range map[string]struct {
		change func(*machine.System)
		want   examinetest.Levels
	}{
		"a network":      {func(s *machine.System) { s.RemoteFS = func(int) (string, error) { return "NFS", nil } }, examinetest.Levels{"file system": examinetest.Bad}},
		"memory":         {func(s *machine.System) { s.InMemory = func(string) bool { return true } }, examinetest.Levels{"file system": examinetest.Warn}},
		"hardly room":    {has(machine.Room{Bytes: 1 << 20, Files: 1e6, Counts: true}, nil), examinetest.Levels{"room": examinetest.Warn}},
		"hardly files":   {has(machine.Room{Bytes: 1 << 40, Files: 10, Counts: true}, nil), examinetest.Levels{"room": examinetest.Warn}},
		"no room":        {has(machine.Room{Bytes: 0, Files: 1e6, Counts: true}, nil), examinetest.Levels{"room": examinetest.Bad}},
		"no files":       {has(machine.Room{Bytes: 1 << 40, Files: 0, Counts: true}, nil), examinetest.Levels{"room": examinetest.Bad}},
		"no fixed files": {has(machine.Room{Bytes: 1 << 40, Files: 0, Counts: false}, nil), examinetest.Levels{}},
		"no answer":      {has(machine.Room{}, syscall.EIO), examinetest.Levels{"room": examinetest.Skip}},
		"a slow disk": {func(s *machine.System) {
			s.Sync = func(*os.File) error { time.Sleep(400 * time.Millisecond); return nil }
		}, examinetest.Levels{"disk": examinetest.Warn}},
		"no disk": {func(s *machine.System) { s.Sync = func(*os.File) error { return syscall.EIO } }, examinetest.Levels{"disk": examinetest.Bad}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d, err := newDriver(storeIn(t), nil, plainDisk())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close(t.Context()) })
			k.change(&d.st.System) // only now: what is wrong at first is refused
			c, err := interlock.New(d, &interlock.Options{Grace: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			examinetest.Finds(t, what, c, k.want, interlock.Writing())
		})
	}
}

// A store in memory is seen by what the system says, where there is such a folder.
func TestDoctor_InMemory(t *testing.T) {
	const memory = "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		if machine.InMemory(memory) {
			t.Error("what is not there is memory")
		}
		return
	}
	dir, err := os.MkdirTemp(memory, "interlock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	examinetest.Finds(t, memory, doctored(t, dir, machine.Host), examinetest.Levels{"file system": examinetest.Warn})
}

// Records that nobody has written to for a week are counted, as Prune would remove them.
func TestDoctor_Leftovers(t *testing.T) {
	dir := storeIn(t)
	c := doctored(t, dir, plainDisk())
	for i := range 3 {
		l, err := c.Mutex(fmt.Sprint("n", i)).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	records, err := filepath.Glob(filepath.Join(dir, "locks", "*"))
	if err != nil || len(records) != 3 {
		t.Fatalf("%v, %v; want a record of each name", records, err)
	}
	ago := time.Now().Add(-8 * 24 * time.Hour)
	if err := errors.Join(os.Chtimes(records[0], ago, ago), os.Chtimes(records[1], ago, ago)); err != nil {
		t.Fatal(err)
	}
	r := examinetest.Finds(t, "two old records", c, examinetest.Levels{})
	for _, f := range r.Findings {
		if f.Title == "leftovers" && !strings.Contains(f.Seen, "would remove up to 2") {
			t.Errorf("%+v; want 2", f)
		}
	}
	for i := range 10_000 {
		name := fmt.Sprint("old", i)
		if err := os.Link(records[0], filepath.Join(dir, "locks", layout.RecordName(name, layout.HashOf(name)))); err != nil {
			t.Fatal(err)
		}
	}
	examinetest.Finds(t, "many old records", c, examinetest.Levels{"leftovers": examinetest.Warn})
}

// A process that has hardly a descriptor left is told so before it has none.
func TestDoctor_Descriptors(t *testing.T) {
	c := doctored(t, storeIn(t), plainDisk())
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(len(open) + leastOpen/2)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	examinetest.Finds(t, "few descriptors", c, examinetest.Levels{"descriptors": examinetest.Warn})
}

var _ driver.Examiner = (*Driver)(nil)
