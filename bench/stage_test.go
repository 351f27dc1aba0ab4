package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// The worker of a stage ends by itself, so that its profile is whole.
func TestStageLeavesItsProfile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(profileVariable, dir)
	if err := run(t.Context(), []string{"-short", "-row", "pg-free"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(dir, "stage-*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("profiles %v, %v; want one", all, err)
	}
	if info, err := os.Stat(all[0]); err != nil || info.Size() == 0 {
		t.Errorf("an empty profile, %v", err)
	}
}
