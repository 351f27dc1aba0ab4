package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The default store comes from the password entry, whatever the environment says: cron, systemd and
// sudo say otherwise than a login does, and two stores would exclude nobody.
func TestDefaultStore(t *testing.T) {
	want := "/var/lib/interlock"
	if uid := os.Geteuid(); uid != 0 {
		u, err := user.LookupId(strconv.Itoa(uid))
		if err != nil {
			t.Fatal(err)
		}
		want = filepath.Join(u.HomeDir, ".local", "state", "interlock")
	}
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "USER", "LOGNAME"} {
		t.Setenv(name, t.TempDir())
	}
	if got, err := defaultStore(); err != nil || got != want {
		t.Errorf("default store %s, error %v, want %s", got, err, want)
	}
}

// What is missing above the default store is made, for the user alone, and what is there is left as
// it is.
func TestMakeAbove(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".local"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := makeAbove(filepath.Join(home, ".local", "state", "interlock")); err != nil {
			t.Fatal(err)
		}
	}
	for folder, want := range map[string]os.FileMode{".local": 0o755, ".local/state": 0o700} {
		if info, err := os.Stat(filepath.Join(home, folder)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %v", folder, info, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".local", "state", "interlock")); err == nil {
		t.Error("the store itself is made: that is for the store, which looks first")
	}
	if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var e *exitError
	if err := makeAbove(filepath.Join(home, "file", "state", "interlock")); !errors.As(err, &e) || e.status != exitStore || !strings.Contains(err.Error(), "--store file:PATH") {
		t.Errorf("where none can be made: %v, want status %d and what to do", err, exitStore)
	}
}

// Which store: a flag goes before a variable; two of the same authority are refused.
func TestStoreChoice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("file:from-file\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		store, file string
		args        []string
		want        string
		status      int
	}{
		{name: "flag", store: "file:a", args: []string{"ls", "--store", "file:a"}, want: "file:a"},
		{name: "flag with =", store: "file:a", args: []string{"ls", "--store=file:a"}, want: "file:a"},
		{name: "file", file: file, args: []string{"ls", "--store-file", file}, want: "file:from-file"},
		{name: "both flags", store: "file:a", file: file, args: []string{"--store", "file:a", "--store-file", file}, status: exitUsage},
		{name: "flag and variable", store: "file:a", file: file, args: []string{"--store", "file:a"}, want: "file:a"},
		{name: "the command's own flag", store: "file:a", args: []string{"run", "x", "--", "p", "--store-file", "f"}, want: "file:a"},
		{name: "no file", file: file + "x", args: []string{"--store-file", file + "x"}, status: exitStore},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("INTERLOCK_STORE", "")
			t.Setenv("INTERLOCK_STORE_FILE", "")
			f := storeFlags{Store: c.store, StoreFile: c.file, args: c.args}
			got, _, err := f.url()
			var e *exitError
			if errors.As(err, &e) && e.status != c.status || err == nil && (c.status != 0 || got != c.want) {
				t.Errorf("store %q, error %v; want %q, status %d", got, err, c.want, c.status)
			}
		})
	}
}

// A file of stores may be a pipe, as a shell's <(command) is: it is read once, and each of its
// lines is a store.
func TestStoresOfAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = w.WriteString("# two\na=file:/one\r\n\n  b=file:/other")
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	pipe := fmt.Sprintf("/dev/fd/%d", r.Fd())
	t.Setenv("INTERLOCK_STORE", "")
	f := &storeFlags{StoreFile: pipe, args: []string{"serve", "--store-file", pipe}}
	got, err := f.stores(terminal{})
	if want := [][2]string{{"a", "file:/one"}, {"b", "file:/other"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("stores %q, error %v, want %q", got, err, want)
	}
}
