package zklock_test

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A disk that keeps changes waiting is told of.
func TestDoctor_SlowDisk(t *testing.T) {
	t.Parallel()
	library := filepath.Join(t.TempDir(), "slowdisk.so")
	if out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-Wall", "-o", library, filepath.Join("testdata", "slowdisk.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := servertest.StartZooKeeper(t.Context(), servertest.Options{Args: well, Env: []string{"LD_PRELOAD=" + library}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	finds(t, "a disk that takes a quarter of a second", s.URL(), &interlock.Options{TTL: 40 * time.Second, Grace: 2 * time.Second}, examinetest.Levels{"disk": examinetest.Warn})
}
