//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestRights(t *testing.T) {
	for _, c := range []struct {
		mode  os.FileMode
		wants string // part of the error, or "" if it is allowed
	}{
		{0o700, ""},
		{0o755, ""},
		{0o770, "the group may write"},
		{0o777, "everybody may write"},
		{0o777 | os.ModeSticky, "everybody may write"},
		{0o700 | os.ModeSetgid, ""},
		{0o770 | os.ModeSetgid, ""},
		{0o777 | os.ModeSetgid, "everybody may write"},
	} {
		dir := storeIn(t)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		d, err := New(dir, nil)
		if err == nil {
			d.Close(t.Context())
		}
		switch {
		case c.wants == "" && err != nil:
			t.Errorf("%v: %v", c.mode, err)
		case c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants) || !strings.Contains(err.Error(), "want")):
			t.Errorf("%v: %v: want %q and what would be right", c.mode, err, c.wants)
		}
		if left, _ := os.ReadDir(dir); c.wants != "" && len(left) > 0 {
			t.Errorf("%v: refused, and yet it was written to: %v", c.mode, left)
		}
	}
}

func TestRights_ForeignDirectoryIsRefused(t *testing.T) {
	dir := "/" // of root, if this is another user
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		if err := os.Chown(dir, 4711, 4711); err != nil {
			t.Fatal(err)
		}
	}
	d, err := New(dir, nil)
	if err == nil {
		d.Close(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Fatalf("a directory of another user: %v", err)
	}
}

// Whatever the umask, nobody but the owner can open what is in a store, and in a setgid directory all of the group can.
func TestRights_OfWhatIsMade(t *testing.T) {
	for _, c := range []struct {
		dir, sub, file os.FileMode
		umask          int
	}{
		{0o700, 0o700, 0o600, 0},
		{0o700, 0o700, 0o600, 0o077},
		{0o770 | os.ModeSetgid, 0o770 | os.ModeSetgid, 0o660, 0o077},
	} {
		dir := storeIn(t)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, c.dir); err != nil {
			t.Fatal(err)
		}
		was := syscall.Umask(c.umask)
		_, s := openAt(t, dir, long)
		acquire(t, s, mutexOf("n"))
		syscall.Umask(was)
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			want := c.file
			if path == dir {
				return err
			} else if e.IsDir() {
				want = c.sub
			}
			if got := info.Mode() & (os.ModePerm | os.ModeSetgid); err == nil && got != want {
				t.Errorf("in %v with umask %03o: %s has %v, want %v", c.dir, c.umask, path[len(dir):], got, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDirectory_ImpossibleOnesAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "floor"), make([]byte, pageSize), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, wants := range map[string]string{
		"":                               "no directory was named",
		file:                             "not a directory",
		filepath.Join(dir, "a", "b"):     "no such file",
		other:                            "does not begin as a floor does",
		filepath.Join(dir, "nul\x00nul"): "invalid argument",
	} {
		d, err := New(path, nil)
		if err == nil {
			d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("%q: %v: want %q", path, err, wants)
		}
	}
	if d, err := New(storeIn(t), &Options{Files: -1}); err == nil {
		d.Close(t.Context())
		t.Error("Files: -1 was accepted")
	}
}

func TestDirectory_RemoteFileSystemsAreRefusedUntouched(t *testing.T) {
	sys := machine
	sys.remoteFS = func(int) (string, error) { return "NFS", nil }
	parent := t.TempDir()
	for _, dir := range []string{filepath.Join(parent, "new"), parent} {
		d, err := newDriver(dir, nil, sys)
		if err == nil {
			d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "is on NFS") || !strings.Contains(err.Error(), "want a directory on a disk") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v was made there, %v", left, err)
	}
}

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
		if _, err := f.WriteAt([]byte{layoutMajor + 1}, at); err != nil {
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
	if !errors.Is(err, errNewer) || !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "use the newer version") {
		t.Errorf("a newer record: %v", err)
	}
	if after, err := os.ReadFile(d.Key("n")); err != nil || string(after) != string(before) {
		t.Errorf("a newer record was changed: %v", err)
	}
	bump(filepath.Join(dir, "floor"), 8)
	if d, err := New(dir, nil); !errors.Is(err, errNewer) || !strings.Contains(err.Error(), "use the newer version") {
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
	if _, err := f.WriteAt([]byte{layoutMajor}, 8); err != nil {
		t.Fatal(err)
	}
}

// A record that was torn or written to by somebody else is not guessed at: whoever wants the lock learns which file it
// is, and nothing is granted.
func TestDamage_NamesTheFile(t *testing.T) {
	for name, spoil := range map[string]func(*os.File) error{
		"flipped": func(f *os.File) error { _, err := f.WriteAt([]byte{0xff}, 70); return err },
		"cut":     func(f *os.File) error { return f.Truncate(40) },
		"zeroed":  func(f *os.File) error { _, err := f.WriteAt(make([]byte, 100), 0); return err },
	} {
		dir := storeIn(t)
		d, s := openAt(t, dir, long)
		c := mutexOf("n")
		acquire(t, s, c)
		f, err := os.OpenFile(d.Key("n"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		_, s2 := openAt(t, dir, long)
		g, err := s2.Acquire(t.Context(), mutexOf("n"))
		if !errors.Is(err, errDamaged) || !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), d.Key("n")) {
			t.Errorf("%s: held %v, %v: want an error that names the file", name, g.Held, err)
		}
		if err := os.Remove(d.Key("n")); err != nil {
			t.Fatal(err)
		}
		if g := acquire(t, s2, mutexOf("n")); !g.Held {
			t.Errorf("%s: after the file was removed, as the error says: not held", name)
		}
		// The holder of the removed line learns that it is lost.
		if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) != 1 || r.Lost[0] != c.ID {
			t.Errorf("%s: renewal of who held the removed record: %+v, %v", name, r, err)
		}
	}
}

// rebooted is a machine after another boot, whose clock shows wall.
func rebooted(boot string, wall time.Time) system {
	sys := machine
	began := time.Now()
	sys.bootID = func() (string, error) { return boot, nil }
	sys.wallClock = func() time.Time { return wall.Add(time.Since(began)) }
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
				t.Fatalf("boot %d: held %v, token %d after %d", boot, g.Held, g.Fence, last[i])
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
	sys := machine
	sys.wallClock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
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
	page, err := os.ReadFile(filepath.Join(d.st.dir, "floor"))
	if err != nil {
		t.Fatal(err)
	}
	return highestSlot(page)
}

// The sweeper removes a record under the hands of somebody who has it open: his next operation is in the new file.
func TestUnlink_IsNoticedUnderTheLock(t *testing.T) {
	dir := storeIn(t)
	_, s1 := openAt(t, dir, long)
	d2, s2 := openAt(t, dir, long)
	c := mutexOf("n")
	acquire(t, s1, c)
	release(t, s1, c)
	d2.sweep(t.Context(), 0)
	if _, err := os.Stat(d2.Key("n")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the record is still there: %v", err)
	}
	c = mutexOf("n")
	if g := acquire(t, s1, c); !g.Held {
		t.Fatal("not held")
	}
	try := mutexOf("n")
	try.Queue = false
	if g := acquire(t, s2, try); g.Held {
		t.Fatal("two hold: one in a file without a name")
	}
	release(t, s1, c)
}

// The same as a race: two drivers and a sweeper that never rests.
func TestUnlink_Race(t *testing.T) {
	dir := storeIn(t)
	d, _ := openAt(t, dir, long)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			d.sweep(ctx, 0)
		}
	})
	var inside atomic.Int32
	var last atomic.Uint64
	var contestants sync.WaitGroup
	for range 4 {
		_, s := openAt(t, dir, long)
		contestants.Go(func() {
			for range 500 {
				c := mutexOf("n")
				g, err := hold(ctx, s, c)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold")
				}
				if last.Swap(g.Fence) >= g.Fence {
					t.Error("a token did not grow")
				}
				inside.Add(-1)
				if _, err := s.Release(ctx, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	contestants.Wait()
	stop()
	all.Wait()
}

func TestSweep_LeavesWhatIsUsed(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	held, idle := mutexOf("held"), mutexOf("idle")
	acquire(t, s, held)
	fence := acquire(t, s, idle).Fence
	release(t, s, idle)
	d.sweep(t.Context(), time.Hour)
	if _, err := os.Stat(d.Key("idle")); err != nil {
		t.Errorf("a record that was used a moment ago: %v", err)
	}
	w := startWorker(t, task{Do: "hold", Dir: dir, Name: "dead", TTL: long})
	w.hear(t, "held")
	w.kill()
	d.sweep(t.Context(), 0)
	if _, err := os.Stat(d.Key("held")); err != nil {
		t.Errorf("a held record: %v", err)
	}
	if _, err := os.Stat(d.Key("idle")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an idle record: %v", err)
	}
	if left, err := os.ReadDir(d.st.sessions); err != nil || len(left) != 2 {
		t.Errorf("%d files of sessions, %v: want file and socket of the living one", len(left), err)
	}
	// The clock is set back behind the removed record's tokens.
	sys := machine
	sys.wallClock = func() time.Time { return time.Unix(1, 0) }
	back, err := newDriver(dir, nil, sys)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close(t.Context())
	if g := acquire(t, openSession(t, back, long), mutexOf("idle")); g.Fence < fence+driver.Stride {
		t.Errorf("token %d after %d", g.Fence, fence)
	}
}

// A directory whose path is longer than the address of a socket works as any other.
func TestPath_LongerThanASocketAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 150))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "store")
	_, s := openAt(t, dir, long)
	w := startWorker(t, task{Do: "hold", Dir: dir, Name: "n", TTL: long})
	w.hear(t, "held")
	c := mutexOf("n")
	acquire(t, s, c)
	w.kill()
	if _, err := hold(within(t, long/2), s, c); err != nil {
		t.Fatal(err)
	}
	w = startWorker(t, task{Do: "wait", Dir: dir, Name: "n", TTL: long})
	w.hear(t, "waiting")
	release(t, s, c)
	w.hear(t, "held")
}

func TestSession_FileRemovedByHand(t *testing.T) {
	d, s := openAt(t, storeIn(t), long)
	acquire(t, s, mutexOf("n"))
	if err := os.Remove(d.st.sessionPath(s.(*session).key)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context()); !errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("renewal of a session without a file: %v", err)
	}
	if _, ok := <-s.(driver.LossNotifier).Lost(); ok {
		t.Error("Lost yields a claim, not the end of the session")
	}
}

func TestSession_IDIsUsedOnce(t *testing.T) {
	d, _ := openAt(t, storeIn(t), long)
	spec := driver.Spec{ID: driver.NewID(), TTL: long}
	if _, err := d.Open(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), spec); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("the same id again: %v", err)
	}
	for _, ttl := range []time.Duration{0, -1, minTTL - 1, maxTTL + 1, 1<<63 - 1} {
		if _, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl}); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("TTL %v: %v", ttl, err)
		}
	}
}

// A broken holder that renews and does not release keeps the next one out until the time that it had, and no longer.
func TestBreak_EndsWithTheTimeTheHolderHad(t *testing.T) {
	dir := storeIn(t)
	const ttl = time.Second
	d, s := openAt(t, dir, ttl)
	_, s2 := openAt(t, dir, long)
	c := mutexOf("n")
	g := acquire(t, s, c)
	at := time.Now()
	next := mutexOf("n")
	acquire(t, s2, next)
	if err := d.Break(t.Context(), "n", driver.PublicID(c.ID), g.Fence, false); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			_, _ = s.Renew(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	if _, err := hold(within(t, soon), s2, next); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(at); took < ttl-50*time.Millisecond {
		t.Errorf("granted after %v, while the broken holder had until %v", took, ttl)
	}
}

func TestStats_OneWriteEach(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	d2, s2 := openAt(t, dir, long)
	count := func(what string, d *Driver, want uint64, f func()) {
		t.Helper()
		before := d.Stats()
		f()
		if got := d.Stats().RecordWrites - before.RecordWrites; got != want {
			t.Errorf("%s: %d writes of records, want %d", what, got, want)
		}
	}
	c := mutexOf("n")
	count("free acquire", d, 1, func() { acquire(t, s, c) })
	count("asked again", d, 0, func() { acquire(t, s, c) })
	try := mutexOf("n")
	try.Queue = false
	count("refused try", d2, 0, func() { acquire(t, s2, try) })
	count("renewal", d, 0, func() {
		if _, err := s.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	next := mutexOf("n")
	count("requeue", d, 1, func() {
		if _, held, err := s.(driver.Requeuer).Requeue(t.Context(), c, next); err != nil || !held {
			t.Fatal(held, err)
		}
	})
	count("release", d, 1, func() { release(t, s, next) })
}

func TestURL(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for url, want := range map[string]string{
		"file:rel":                          filepath.Join(dir, "rel"),
		"file:" + dir + "/one":              filepath.Join(dir, "one"),
		"file://" + dir + "/two":            filepath.Join(dir, "two"),
		"file://localhost" + dir + "/three": filepath.Join(dir, "three"),
		"file:with%20blank?files=3":         filepath.Join(dir, "with blank"),
	} {
		d, err := driver.OpenURL(t.Context(), url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		got, err := filepath.EvalSymlinks(d.(*Driver).st.dir)
		wanted, _ := filepath.EvalSymlinks(want)
		if err != nil || got != wanted {
			t.Errorf("%s: %s (%v), want %s", url, got, err, wanted)
		}
		d.Close(t.Context())
	}
	for url, wants := range map[string]string{
		"file:":                  "names no directory",
		"file://host/dir":        "names a host",
		"file:a?file=3":          "unknown parameter",
		"file:a?files=0":         "1 or more",
		"file:a?files=1&files=2": "want it once",
		"file:a#b":               "%23",
	} {
		d, err := driver.OpenURL(t.Context(), url)
		if err == nil {
			d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("%s: %v: want %q", url, err, wants)
		}
	}
}

// Few open records serve many held names, and renewals.
func TestFiles_FewServeManyNames(t *testing.T) {
	d, err := New(storeIn(t), &Options{Files: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	s := openSession(t, d, long)
	var claims []driver.Claim
	for i := range 100 {
		c := mutexOf(fmt.Sprint("n", i))
		if g := acquire(t, s, c); !g.Held {
			t.Fatal("not held")
		}
		claims = append(claims, c)
	}
	if n := d.open.Len(); n > 4 {
		t.Errorf("%d records are open", n)
	}
	if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Fatalf("renewal: %+v, %v", r, err)
	}
	for _, c := range claims {
		release(t, s, c)
	}
	if n := len(d.desks); n > 4 {
		t.Errorf("%d names are remembered after all were released", n)
	}
}
