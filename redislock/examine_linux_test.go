package redislock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A log that cannot be written stops all writes; one that cannot be rewritten grows until it does.
func TestDoctor_Log(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	c := open(t, s.URL(), nil)
	logs := filepath.Join(s.Dir(), "appendonlydir")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	// The first log is written under this name, on a disk that is full.
	if err := os.Symlink("/dev/full", filepath.Join(logs, "temp-appendonly.aof.incr")); err != nil {
		t.Fatal(err)
	}
	is := func(what string) {
		t.Helper()
		eventually(t, what, func() bool { return strings.Contains(s.MustDo(t, "INFO", "persistence"), what) })
	}
	s.MustDo(t, "CONFIG", "SET", "appendfsync", "everysec") // with always it would end
	s.MustDo(t, "CONFIG", "SET", "appendonly", "yes")
	is("aof_rewrite_in_progress:0")
	s.MustDo(t, "SET", "a", "b")
	is("aof_last_write_status:err")
	examinetest.Finds(t, "a log that cannot be written", c, examinetest.Levels{"persistence": examinetest.Warn, "disk": examinetest.Bad})

	s = servertest.Redis(t)
	c = open(t, s.URL(), nil)
	s.MustDo(t, "CONFIG", "SET", "appendfsync", "always")
	s.MustDo(t, "CONFIG", "SET", "appendonly", "yes")
	is("aof_rewrite_in_progress:0")
	logs = filepath.Join(s.Dir(), "appendonlydir")
	if err := os.RemoveAll(logs); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Do("BGREWRITEAOF") // which says so itself
	is("aof_last_bgrewrite_status:err")
	examinetest.Finds(t, "a log that cannot be rewritten", c, examinetest.Levels{"disk": examinetest.Warn})
}
