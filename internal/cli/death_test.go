//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// family forks twice, becomes a daemon, and ignores SIGTERM. It writes its process ids into the
// file $PIDS.
const family = `trap "" TERM
echo $$ >>$PIDS
sh -c 'echo $$ >>$PIDS; while :; do sleep 1; done' &
(setsid sh -c 'echo $$ >>$PIDS; while :; do sleep 1; done' &)
while :; do sleep 1; done`

// When the next one runs, nothing of the last job is alive, however it ended (C1, C2, C4).
func TestNextRunsAfterTheDead(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds int
		end    func(interlock int)
	}{
		{"interlock killed", 10, func(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }},
		{"interlock stopped", 2, func(pid int) { _ = syscall.Kill(pid, syscall.SIGSTOP) }},
		{"its group stopped", 2, func(pid int) { _ = syscall.Kill(-pid, syscall.SIGSTOP) }},
		{"guard killed", 5, func(pid int) {
			if guard := guardOf(pid); guard != 0 { // else it has just ended, and 0 is the group of this test
				_ = syscall.Kill(guard, syscall.SIGKILL)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range c.rounds {
				succeed(t, c.end)
			}
		})
	}
}

// succeed runs a family under a lock, has it ended, and asks the successor, under the lock, who is
// alive. Where the machine is too slow to renew in time, the lease is over before the family is
// complete, and a longer one is tried.
func succeed(t *testing.T, end func(interlock int)) {
	t.Helper()
	for ttl := 1200 * time.Millisecond; !succeeds(t, ttl, end); ttl *= 3 {
		if ttl > guardtest.Patience() {
			t.Fatalf("was not judged: a lease of %v was over before the family was complete", ttl)
		}
	}
}

// succeeds reports whether it could be judged.
func succeeds(t *testing.T, ttl time.Duration, end func(interlock int)) bool {
	t.Helper()
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	env := append(os.Environ(), "INTERLOCK_STORE=file:"+filepath.Join(dir, "store"), "PIDS="+pids)
	first := exec.Command("interlock", "run", "--ttl", ttl.String(), "--grace", "400ms", "job", "--", "sh", "-c", family)
	first.Env = env
	first.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = first.Wait()
	}()
	defer func() {
		_ = first.Process.Kill()
		<-ended
	}()
	var members []string
	lost := false
	guardtest.Eventually(t, "the family is complete", func() bool {
		select {
		case <-ended:
			lost = first.ProcessState.ExitCode() == 76
		default:
		}
		text, _ := os.ReadFile(pids)
		members = strings.Fields(string(text))
		return lost || len(members) == 3
	})
	if lost {
		return false
	}

	next := exec.Command("interlock", "run", "--quiet", "job", "--", "sh", "-c",
		`for p in $(cat $PIDS); do grep -s '^State:.[^ZX]' /proc/$p/status && echo $p is alive; done; true`)
	next.Env = env
	end(first.Process.Pid)
	out, err := next.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("error %v; of the family %v:\n%s", err, members, out)
	}
	return true
}

// A dead process is not a dead job: while anything of the command lives, nobody gets in before the
// lease is over, even when interlock and the guard were killed together and a daemon got away.
func TestLockOutlivesInterlock(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	env := append(os.Environ(), "INTERLOCK_STORE=file:"+filepath.Join(dir, "store"), "DAEMON="+pid)
	first := exec.Command("interlock", "run", "--ttl", "10m", "job", "--", "sh", "-c", "setsid sleep 1000 & echo $! >$DAEMON; wait")
	first.Env = env
	first.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	daemon := 0
	defer func() { // also where what follows never happens
		_ = first.Process.Kill()
		if daemon != 0 {
			_ = syscall.Kill(daemon, syscall.SIGKILL)
		}
	}()
	guardtest.Eventually(t, "the daemon runs", func() bool {
		text, _ := os.ReadFile(pid)
		daemon, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", daemon))
		return string(name) == "sleep\n"
	})
	guard := guardOf(first.Process.Pid)
	// Stopped first, so that it does not see the guard die.
	_ = first.Process.Signal(syscall.SIGSTOP)
	guardtest.Eventually(t, "interlock is stopped", func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first.Process.Pid))
		return strings.Contains(string(stat), ") T ")
	})
	_ = syscall.Kill(guard, syscall.SIGKILL)
	_ = first.Process.Kill()
	_ = first.Wait()

	try := exec.Command("interlock", "run", "--try", "job", "--", "true")
	try.Env = env
	if err := try.Run(); try.ProcessState.ExitCode() != 75 {
		t.Errorf("error %v, want exit status 75: the daemon lives", err)
	}
	_ = syscall.Kill(daemon, syscall.SIGKILL)
	next := exec.Command("interlock", "run", "job", "--", "true")
	next.Env = env
	if err := next.Run(); err != nil {
		t.Errorf("error %v when the daemon is dead", err)
	}
}

// guardOf returns the process id of the guard of an interlock, its only child; and of a guard, that
// of the command.
func guardOf(interlock int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", interlock, interlock))
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", interlock))
	for _, list := range lists {
		more, _ := os.ReadFile(list)
		text = append(text, more...)
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[0])
	return pid
}
