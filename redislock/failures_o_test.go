package redislock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

// O7: the server cannot write to its disk, so it refuses every write, renewals and releases with
// them. What is held stays held until its end, which its holder is told before the key goes; errors
// say what the server says; a release is not taken for done, and is when the server can write
// again.
func TestO07_TheServersDiskIsFull(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, "--save", "3600 1000000", "--dbfilename", "dump.rdb")
	a := open(t, s.URL(), &interlock.Options{TTL: 3 * time.Second, Patience: time.Second})
	b := open(t, s.URL(), &interlock.Options{TTL: 2 * ample, Patience: time.Second})
	kept := hold(t, b.Mutex("kept"))
	lease := hold(t, a.Mutex("m"))
	saves := func(status string) {
		t.Helper()
		s.MustDo(t, "BGSAVE")
		eventually(t, "a save is "+status, func() bool {
			info := s.MustDo(t, "INFO", "persistence")
			return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_last_bgsave_status:"+status)
		})
	}
	dump := filepath.Join(s.Dir(), "dump.rdb") // a folder takes the place of the file, so that it cannot be written
	if err := os.Mkdir(dump, 0o700); err != nil {
		t.Fatal(err)
	}
	saves("err")

	const reason = "cannot save to disk"
	classed(t, "try", second(b.Mutex("n").TryLock(t.Context())), reason, false)
	classed(t, "lock", second(b.Mutex("n").Lock(t.Context())), reason, false)
	if err := kept.Err(); err != nil {
		t.Errorf("what is held was given up: %v", err)
	}
	if err := kept.Release(); !errors.Is(err, interlock.ErrUncertain) || errors.Is(err, interlock.ErrLost) || !strings.Contains(err.Error(), reason) {
		t.Errorf("release: %v, want %v, and that the server %s", err, interlock.ErrUncertain, reason)
	}
	eventually(t, "the key that nobody could renew is gone", func() bool { return s.MustDo(t, "EXISTS", "m") == "0" })
	if err := lease.Err(); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the key is gone, and its holder was not told: %v", err)
	} else if cause := context.Cause(lease.Context()); !strings.Contains(cause.Error(), reason) {
		t.Errorf("the lease ended by %v: want that the server %s", cause, reason)
	}

	if err := os.Remove(dump); err != nil {
		t.Fatal(err)
	}
	saves("ok")
	eventually(t, "what was released before is free", func() bool { return s.MustDo(t, "EXISTS", "kept") == "0" })
	again := hold(t, b.Mutex("m"))
	grows(t, "a lock of a server that can write again", lease.Fence(), again)
	release(t, again)
}
