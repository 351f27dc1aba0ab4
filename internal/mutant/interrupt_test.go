package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A hunt that is interrupted says nothing about the bugs that it has not judged, and leaves no files.
func TestHunt_IsInterrupted(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	out := onWrite{cancel: cancel} // when the tests are built
	h := hunter{root: seeded, limit: time.Minute, parallel: 1, out: &out}
	escaped, err := h.run(ctx, bugsOf(t, seeded))
	if escaped != 0 || !errors.Is(err, context.Canceled) || strings.Contains(out.String(), "convicted") {
		t.Errorf("%d escaped, %v, %s; want that it was cancelled, and no word of any bug", escaped, err, out.String())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

type onWrite struct {
	strings.Builder
	cancel context.CancelFunc
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.cancel()
	return w.Builder.Write(p)
}

func TestHunt_NeedsBugsAndAPlace(t *testing.T) {
	h := hunter{root: seeded}
	if _, err := h.run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "there are no bugs") {
		t.Errorf("without bugs: %v", err)
	}
	t.Setenv("TMPDIR", "here")
	if _, err := h.run(t.Context(), bugsOf(t, seeded)); err == nil || !strings.Contains(err.Error(), "want an absolute path") {
		t.Errorf("with a relative TMPDIR: %v", err)
	}
}

// The root may be a link, and the module may have a version in its path.
func TestRun_FindsTheTestsOfALink(t *testing.T) {
	root := copyOf(t, "bug A1\ntest TestAdd$\nfails Add\nsays It subtracts.\nin lock.go\n-\treturn a + b\n+\treturn a - b\n")
	lock, link := filepath.Join(root, "lock"), filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(filepath.Join(lock, "go.mod"), []byte("module example.test/seeded/v2\n\ngo 1.25.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(lock, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lock, "a.rows"), []byte("part A\ntitle Adding\n\nrow A1\nwrong It subtracts.\nright It adds.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-root", link, "-rows", ".", "-race=false"}); err != nil {
		t.Error(err)
	}
}
