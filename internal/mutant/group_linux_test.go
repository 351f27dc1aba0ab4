package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that the test left behind is gone after the hunt, although it has a session of its own.
func TestHuntLeavesNoProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	t.Setenv("SEEDED_PID", file)
	leaves := *bugsOf(t, seeded)[0]
	leaves.test = "TestLeavesAProcess"
	var out strings.Builder
	h := hunter{root: seeded, limit: time.Minute, parallel: 1, out: &out}
	if _, err := h.run(t.Context(), []*bug{&leaves}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !dead(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is alive", pid)
		}
	}
}

// dead reports whether the process is gone or a zombie that nobody has collected.
func dead(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}
