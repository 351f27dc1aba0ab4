//go:build linux || darwin

package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
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
	if err := os.WriteFile(filepath.Join(other, "floor"), make([]byte, layout.PageSize), 0o600); err != nil {
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

// A directory that is away, as one that was moved or whose disk is not mounted, does not say that nobody holds.
func TestDirectory_ThatIsAwayTellsOfNobody(t *testing.T) {
	dir := storeIn(t)
	d, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	look := func(what string, there bool) {
		t.Helper()
		if l, err := d.Line(t.Context(), "nobody's"); (err == nil) != there || len(l.Claims) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v, %v", what, l, err)
		}
	}
	look("a free name", true)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	look("the directory is away", false)
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	look("it is back", true)
}

func TestDirectory_RemoteFileSystemsAreRefusedUntouched(t *testing.T) {
	sys := machine.Host
	sys.RemoteFS = func(int) (string, error) { return "NFS", nil }
	parent := t.TempDir()
	for _, dir := range []string{filepath.Join(parent, "new"), parent} {
		d, err := newDriver(dir, nil, sys)
		if err == nil {
			d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "is on NFS") || !strings.Contains(err.Error(), "want a directory on a disk") {
			t.Errorf("%s: a directory on NFS is opened: %v, want it refused", dir, err)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v was made there, %v", left, err)
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
		got, err := filepath.EvalSymlinks(d.(*Driver).st.Dir)
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
