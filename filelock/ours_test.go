//go:build linux || darwin

package filelock

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// plant makes files below dir: paths and contents; a path that ends in a slash is a directory.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		path, isDir := filepath.Join(dir, path), strings.HasSuffix(path, "/")
		above := filepath.Dir(path)
		if isDir {
			above = path
		}
		if err := os.MkdirAll(above, 0o700); err != nil {
			t.Fatal(err)
		}
		if isDir {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tree says what stands below dir, when it was made, and what is in it.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
		}
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %v inode %d, changed %v: %.80q\n", rel, info.Mode(), info.Sys().(*syscall.Stat_t).Ino, info.ModTime(), content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	shapeOfRecord  = "notes-2024-" + strings.Repeat("0a", 16)
	shapeOfSession = strings.Repeat("0a", 16)
)

// A directory that holds anything but a store is refused, and left as it was.
func TestOurs_AnotherDirectoryIsRefusedUntouched(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		wants string // named in the error
	}{
		"a project":                     {map[string]string{"README": "about it"}, "README"},
		"a project with our folders":    {map[string]string{"locks/door.txt": "open", "sessions/": ""}, "locks/door.txt"},
		"folders in our folders":        {map[string]string{"locks/": "", "sessions/monday/notes": "x"}, "sessions/monday"},
		"files where our folders stand": {map[string]string{"locks": "x"}, "locks"},
		"a hidden file":                 {map[string]string{".git/HEAD": "ref"}, ".git"},
		"records of somebody":           {map[string]string{"locks/" + shapeOfRecord: "mine"}, shapeOfRecord},
		"sessions of somebody":          {map[string]string{"sessions/" + shapeOfSession: "mine"}, shapeOfSession},
		"a store without its floor":     {map[string]string{"floor": "", "locks/" + shapeOfRecord: layout.RecordMagic}, shapeOfRecord},
		"no socket":                     {map[string]string{"sessions/" + shapeOfSession + ".s": ""}, shapeOfSession + ".s"},
		"another floor":                 {map[string]string{"floor": "wood"}, "floor"},
		"a folder named floor":          {map[string]string{"floor/": ""}, "floor"},
		"an empty floor beside things":  {map[string]string{"floor": "", "ceiling": ""}, "ceiling"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeIn(t)
			plant(t, dir, c.files)
			before := tree(t, dir)
			d, err := New(dir, nil)
			if err == nil {
				d.Close(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.wants) || !strings.Contains(err.Error(), "want a directory") {
				t.Errorf("opened it: %v; want it refused for %s, and what would be right", err, c.wants)
			}
			if after := tree(t, dir); after != before {
				t.Errorf("refused, and yet changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// What the making of a store leaves when it is killed is no reason to refuse it.
func TestOurs_HalfMadeIsMade(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing":        {},
		"folders":        {"locks/": "", "sessions/": ""},
		"an empty floor": {"floor": "", "locks/": "", "sessions/": ""},
		"the self-test":  {"floor": "", "locks/": "", "sessions/test-" + shapeOfSession: ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeIn(t)
			plant(t, dir, files)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			d, s := openAt(t, dir, long)
			if g := acquire(t, s, mutexOf("n")); !g.Held {
				t.Error("not held")
			}
			d.sweep(t.Context(), 0)
		})
	}
}

// What stands in a store and is not of the store stays, whatever its name: when the sweeper comes, and after a reboot.
func TestOurs_NothingElseIsRemoved(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	c := mutexOf("n")
	acquire(t, s, c)
	release(t, s, c)
	theirs := map[string]string{
		"locks/door.txt": "open", "locks/box/key": "x", "locks/" + shapeOfRecord: "mine", "locks/short-0a": "",
		"sessions/notes": "x", "sessions/" + shapeOfSession: "mine", "sessions/" + shapeOfSession[2:] + "0b.new": "mine",
		"sessions/" + shapeOfSession[2:] + "0c.s": "no socket", "sessions/" + shapeOfSession[2:] + "0d.lines": "mine",
		"README": "about it",
	}
	plant(t, dir, theirs)
	yesterday := time.Now().Add(-24 * time.Hour)
	for path := range theirs {
		if err := os.Chtimes(filepath.Join(dir, path), yesterday, yesterday); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		for path, content := range theirs {
			if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != content {
				t.Errorf("%s, %s: %q, %v; want %q", when, path, got, err, content)
			}
		}
	}
	d.sweep(t.Context(), 0)
	check("after the sweeper")
	if _, err := os.Stat(d.Key("n")); err == nil {
		t.Error("the sweeper left a record that nobody needs")
	}
	acquire(t, s, mutexOf("n"))
	again, err := newDriver(dir, nil, rebooted("another boot", time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(t.Context())
	check("after a reboot")
	if _, err := os.Stat(d.Key("n")); err == nil {
		t.Error("a record of the boot before stays")
	}
}
