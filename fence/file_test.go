//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/internal/tabletest"
)

type guardedFile struct {
	t tester
	f *fence.File
}

func newGuardedFile(t tester, path string) *guardedFile {
	return &guardedFile{t: t, f: fence.NewFile(path, 0o600)}
}

func (g *guardedFile) Claim(token uint64) error { return g.f.Claim(context.Background(), token) }
func (g *guardedFile) Write(token uint64, v int) error {
	return g.f.Write(context.Background(), token, []byte(strconv.Itoa(v)))
}

func (g *guardedFile) Read() int {
	b, err := g.f.Read()
	if err != nil {
		return 0
	}
	v, err := strconv.Atoi(string(b))
	if err != nil {
		g.t.Fatalf("torn content %q", b)
	}
	return v
}

func addFile(t *testing.T, all map[string]tabletest.Guarded) {
	t.Helper()
	all["file"] = newGuardedFile(t, filepath.Join(t.TempDir(), "f"))
}

func TestFile_Rule(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		tabletest.CheckRule(t, newGuardedFile(t, filepath.Join(dir, strconv.Itoa(n))))
	})
}

// A stale holder is refused, and leaves neither its content nor a temporary file.
func TestFile_StaleLeavesNothing(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	f := fence.NewFile(path, 0o640)
	if _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read before the first write: %v, want ErrNotExist", err)
	}
	if err := f.Write(ctx, 34, []byte("new")); err != nil {
		t.Fatal(err)
	}
	err := f.Write(ctx, 33, []byte("old"))
	var stale *fence.StaleError
	if !errors.As(err, &stale) || stale.Highest != 34 || stale.Resource != path {
		t.Errorf("stale write: %v", err)
	}
	wantDir(t, path, "doc", "doc.fence")
	if b, err := f.Read(); err != nil || string(b) != "new" {
		t.Errorf("content %q, %v; want new", b, err)
	}
}

// A holder overtaken while it works is refused at the end, and one overtaken in the middle of its write as well.
func TestFile_UpdateOvertaken(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	f := fence.NewFile(path, 0o600)
	err := f.Update(ctx, 33, func(content []byte) ([]byte, error) {
		if content != nil {
			t.Errorf("content %q before the first write, want nil", content)
		}
		// Nothing is locked here, so the later holder is not held up.
		if err := f.Write(ctx, 34, []byte("34")); err != nil {
			t.Error(err)
		}
		return []byte("33"), nil
	})
	if !errors.Is(err, fence.ErrStale) {
		t.Errorf("overtaken update: %v, want ErrStale", err)
	}
	boom := errors.New("boom")
	if err := f.Update(ctx, 35, func([]byte) ([]byte, error) { return nil, boom }); !errors.Is(err, boom) {
		t.Errorf("failed update: %v, want the error of change", err)
	}
	if b, _ := f.Read(); string(b) != "34" {
		t.Errorf("content %q, want 34", b)
	}
	wantDir(t, path, "doc", "doc.fence")
}

// Update claims before it reads: when B (34) has read, A (33) is refused at once. Without the claim, which is what a
// bare Read and Write are, A's update is acknowledged and then lost; the control shows it.
func TestFile_ClaimComesFirst(t *testing.T) {
	ctx := context.Background()
	f := newGuardedFile(t, filepath.Join(t.TempDir(), "doc"))
	if err := f.Write(33, 5); err != nil {
		t.Fatal(err)
	}
	var errA error
	err := f.f.Update(ctx, 34, func(content []byte) ([]byte, error) {
		errA = f.Write(33, 6)
		return fmt.Append(content[:0:0], 6), nil
	})
	if err != nil || !errors.Is(errA, fence.ErrStale) {
		t.Errorf("B: %v; A: %v, want ErrStale: B has read already", err, errA)
	}

	control := newGuardedFile(t, filepath.Join(t.TempDir(), "doc"))
	if err := control.Write(33, 5); err != nil {
		t.Fatal(err)
	}
	b := control.Read()
	errA = control.Write(33, 6)
	if err := control.Write(34, b+1); err != nil || errA != nil || control.Read() != 6 {
		t.Errorf("control: B %v, A %v, value %d; want both acknowledged and one lost", err, errA, control.Read())
	}
}

func TestFile_KeepsMode(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	f := fence.NewFile(path, 0o600)
	if err := f.Update(ctx, 1, func(b []byte) ([]byte, error) { return append(b, " and after"...), nil }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v, %v; want 0751", info.Mode(), err)
	}
	if b, _ := f.Read(); string(b) != "before and after" {
		t.Errorf("content %q", b)
	}
}

// What is no regular file is refused, by the claim already, and nothing is touched.
func TestFile_RefusesLinks(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	name := func(n string) string { return filepath.Join(dir, n) }
	if err := os.WriteFile(name("target"), []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name("sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"link", "doc.fence"} {
		if err := os.Symlink(name("target"), name(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"link", "sub", "doc"} { // a link, a directory, and one whose side file is a link
		f := fence.NewFile(name(path), 0o600)
		if err := f.Claim(ctx, 1); err == nil {
			t.Errorf("%s was claimed", path)
		}
		if err := f.Write(ctx, 1, []byte("x")); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	wantDir(t, name("x"), "doc.fence", "link", "sub", "target")
	if b, err := os.ReadFile(name("target")); err != nil || string(b) != "t" {
		t.Errorf("target holds %q, %v", b, err)
	}
	if err := fence.NewFile(name("no/doc"), 0o600).Claim(ctx, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v, want ErrNotExist", err)
	}
}

// Goroutines over several Files of one path, no lock at all: none of the acknowledged updates is lost.
func TestFile_NoneLost(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	var mu sync.Mutex
	var tokens uint64
	acked := 0
	var wg sync.WaitGroup
	for range 6 {
		f := newGuardedFile(t, path)
		wg.Go(func() {
			for range 20 {
				mu.Lock()
				tokens++
				token := tokens
				mu.Unlock()
				err := f.f.Update(ctx, token, increment)
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					acked++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if got := newGuardedFile(t, path).Read(); got != acked || acked == 0 {
		t.Errorf("number %d after %d acknowledged increments", got, acked)
	}
	wantDir(t, path, "doc", "doc.fence")
}

// Two writers with one token, one holder's, take turns at the temporary file that the token names.
func TestFile_SameToken(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	var wg sync.WaitGroup
	for g := range 4 {
		f := fence.NewFile(path, 0o600)
		content := strings.Repeat(fmt.Sprint(g), 5000+g)
		wg.Go(func() {
			for range 15 {
				if err := f.Write(ctx, 7, []byte(content)); err != nil {
					t.Error(err)
				}
				b, err := f.Read()
				if err != nil || strings.Trim(string(b), string(b[:1])) != "" || len(b) != 5000+int(b[0]-'0') {
					t.Errorf("torn content of %d bytes, %v", len(b), err)
				}
			}
		})
	}
	wg.Wait()
	wantDir(t, path, "doc", "doc.fence")
}

func increment(content []byte) ([]byte, error) {
	n := 0
	if len(content) > 0 {
		if _, err := fmt.Sscan(string(content), &n); err != nil {
			return nil, fmt.Errorf("torn content %q: %w", content, err)
		}
	}
	return fmt.Append(nil, n+1), nil
}

func wantDir(t *testing.T, path string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("directory holds %q, want %q", got, want)
	}
}
