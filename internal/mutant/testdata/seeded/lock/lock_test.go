package lock

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

func TestAdd(t *testing.T) {
	if got := Add(2, 2); got != 4 {
		t.Errorf("Add(2, 2) = %d, want 4", got)
	}
}

func TestAddZero(t *testing.T) {
	if got := Add(0, 0); got != 0 {
		t.Errorf("Add(0, 0) = %d, want 0", got)
	}
}

func TestOne(t *testing.T) {
	if got := One(); got != 1 {
		t.Errorf("One() = %d, want 1", got)
	}
}

func TestLarger(t *testing.T) {
	if got := (&Pair{A: 1, B: 2}).Larger(); got != 2 {
		t.Errorf("the larger one is %d, want 2", got)
	}
}

func TestSet(t *testing.T) {
	var p Pair
	if err := p.Set(4); err == nil {
		t.Errorf("set above the limit")
	}
	if err := p.Set(3); err != nil {
		t.Errorf("not set: %v", err)
	}
}

func TestWords(t *testing.T) {
	if words != 5 || greeting != "hello" {
		t.Errorf("the greeting is %q, of %d bytes", greeting, words)
	}
}

func TestFailsAlways(t *testing.T) { t.Error("with or without a bug") }

// TestLeavesAProcess leaves one that has a session of its own, as a daemon would.
func TestLeavesAProcess(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("SEEDED_PID"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
}
