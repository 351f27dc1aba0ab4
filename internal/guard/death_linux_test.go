package guard_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// stubborn is a command that forks twice, becomes a daemon in a session of its own, and ignores
// SIGTERM: the child, its child, and the daemon with one more.
const stubborn = `trap "" TERM HUP
sh -c 'sleep 1001 & wait' &
(setsid sh -c 'sleep 1002 & wait' &)
while :; do sleep 1003; done`

// launchTree launches stubborn and waits until it is complete.
func launchTree(t *testing.T, flags ...string) *supervisor {
	t.Helper()
	s := launch(t, append(flags, "--", "sh", "-c", stubborn)...)
	guardtest.Eventually(t, "the whole tree runs", func() bool { return len(marked(s.mark)) == 6 })
	return s
}

func gone(s *supervisor) func() bool { return func() bool { return len(marked(s.mark)) == 0 } }

// treeDies waits until nothing of the tree of launchTree is left.
func treeDies(t *testing.T, s *supervisor) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(guardtest.Patience()); !gone(s)(); <-tick.C {
		if time.Now().Before(end) {
			continue
		}
		command, daemon := 0, 0
		for _, pid := range marked(s.mark) {
			if session, _ := unix.Getsid(pid); session == s.Process.Pid {
				command++
			} else {
				daemon++
			}
		}
		t.Fatalf("not after %v: the tree is dead; %d processes of the command and %d of the daemon live", guardtest.Patience(), command, daemon)
	}
}

// interlock is killed: the guard kills the tree, grandchildren and daemons too (C2, C4).
func TestKillInterlock(t *testing.T) {
	s := launchTree(t)
	guard := s.guard(t)
	_ = syscall.Kill(s.Process.Pid, syscall.SIGKILL)
	treeDies(t, s)
	guardtest.Eventually(t, "the guard has ended", func() bool { return syscall.Kill(guard, 0) != nil })
}

// The guard is killed: interlock inherits the tree and kills it.
func TestKillGuard(t *testing.T) {
	s := launchTree(t)
	_ = syscall.Kill(s.guard(t), syscall.SIGKILL)
	if got := s.exit(t); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if left := marked(s.mark); len(left) > 0 {
		t.Errorf("processes %v are alive after interlock's end", left)
	}
	if !strings.Contains(s.said(), "guard died: true") {
		t.Errorf("it said:\n%s", s.said())
	}
}

// The guard is killed while interlock is stopped: the kernel kills the child, and interlock the
// rest when it continues.
func TestKillGuardOfStoppedInterlock(t *testing.T) {
	s := launchTree(t)
	child := s.child(t)
	guard := s.guard(t)
	_ = syscall.Kill(s.Process.Pid, syscall.SIGSTOP)
	guardtest.Eventually(t, "interlock is stopped", func() bool { return stopped(s.Process.Pid) })
	_ = syscall.Kill(guard, syscall.SIGKILL)
	guardtest.Eventually(t, "the child is dead", func() bool { return !environment(child, "MARK="+s.mark) })
	_ = syscall.Kill(s.Process.Pid, syscall.SIGCONT)
	if got := s.exit(t); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if left := marked(s.mark); len(left) > 0 {
		t.Errorf("processes %v are alive after interlock's end", left)
	}
}

// The guard is stopped: interlock kills it when the kill time is over, and the tree with it.
func TestStopGuard(t *testing.T) {
	s := launchTree(t, "-last", "300ms")
	guard := s.guard(t)
	_ = syscall.Kill(guard, syscall.SIGSTOP)
	guardtest.Eventually(t, "the guard is stopped", func() bool { return stopped(guard) })
	s.tell(t)
	if got := s.exitAfter(t, "the end of the lease"); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if left := marked(s.mark); len(left) > 0 {
		t.Errorf("processes %v are alive after interlock's end", left)
	}
}

// interlock is stopped, so nothing is renewed: the guard ends the tree before the lease is over.
func TestStopInterlock(t *testing.T) { stopInTime(t, "self") }

// The same for its whole process group: the guard is not in it.
func TestStopGroup(t *testing.T) { stopInTime(t, "group") }

func stopInTime(t *testing.T, halt string) {
	t.Helper()
	const last, grace, noise = time.Second, 400 * time.Millisecond, 3 * time.Second
	s := launchTree(t, "-renew", "100ms", "-last", last.String(), "-halt", halt)
	s.tell(t)
	guardtest.Eventually(t, "interlock is stopped", func() bool { return stopped(s.Process.Pid) })
	// The last renewal was before. To see that the tree is dead takes its time, too, so this bounds
	// it only, and in make proof; that it is dead before the next one gets in is shown where there
	// are locks.
	end := time.Now().Add(last + grace + noise)
	treeDies(t, s)
	if late := time.Since(end); late > 0 && !testing.Short() {
		t.Errorf("the tree was dead %v after the lease's end and %v", late, noise)
	}
	if !stopped(s.Process.Pid) {
		t.Error("interlock is not stopped any more, so nothing is shown")
	}
	_ = syscall.Kill(-s.Process.Pid, syscall.SIGCONT)
	if got := s.exit(t); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
}

// Renewals keep the command alive past its first deadline. Where the machine is too slow to renew
// in time, a longer lease shows that.
func TestRenewals(t *testing.T) {
	for lease := 1500 * time.Millisecond; ; lease *= 2 {
		s := prepare(t, "-lease", lease.String(), "-renew", "50ms", "--", "sh", "-c", fmt.Sprintf("sleep %g; exit 7", (lease+lease/4).Seconds()))
		s.start(t)
		got := s.exit(t)
		if got == 7 {
			return
		}
		if lease > guardtest.Patience()/3 || got != exitLost && got != exitLate {
			t.Fatalf("exit status %d with a lease of %v, want 7; it said:\n%s", got, lease, s.said())
		}
	}
}

// Everything is stopped past the lease, then continued in the worst order: the tree is killed at
// once.
func TestFreeze(t *testing.T) {
	s := launchTree(t, "-grace", "100ms", "-renew", "50ms", "-last", "500ms", "-halt", "self")
	tree, guard := marked(s.mark), s.guard(t)
	s.tell(t)
	guardtest.Eventually(t, "interlock is stopped", func() bool { return stopped(s.Process.Pid) })
	for _, pid := range append([]int{guard}, tree...) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	guardtest.Eventually(t, "the guard is stopped", func() bool { // or has ended in time, before it could be: a slow machine
		return stopped(guard) || state(guard) == "Z"
	})
	time.Sleep(700 * time.Millisecond) // the lease runs out
	for _, pid := range append(tree, guard, s.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	if got := s.exit(t); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if left := marked(s.mark); len(left) > 0 {
		t.Errorf("processes %v are alive after interlock's end", left)
	}
}

// The store says that the lock is lost: SIGTERM at once, SIGKILL in time (C1).
func TestLoss(t *testing.T) {
	t.Run("heeded", func(t *testing.T) {
		s := prepare(t, "-grace", "1m", "--",
			"sh", "-c", `trap 'echo asked; exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done`)
		var out bytes.Buffer
		s.Stdout = &out
		s.start(t)
		s.says(t, "runs")
		s.says(t, "ready")
		s.tell(t)
		if got := s.exit(t); got != exitLost || out.String() != "asked\n" {
			t.Errorf("exit status %d, want %d; the command wrote %q", got, exitLost, out.String())
		}
	})
	t.Run("ignored", func(t *testing.T) {
		s := launchTree(t)
		s.tell(t)
		if got := s.exit(t); got != exitLost {
			t.Errorf("exit status %d, want %d", got, exitLost)
		}
		if left := marked(s.mark); len(left) > 0 {
			t.Errorf("processes %v are alive after interlock's end", left)
		}
	})
}

// At the deadline the grandchildren are asked as well, and also those that are stopped.
func TestTermReachesTree(t *testing.T) {
	dir := t.TempDir()
	daemon := filepath.Join(dir, "daemon")
	s := launch(t, "-last", "100ms", "-grace", "1m", "--", "sh", "-c",
		`setsid sh -c 'trap "echo asked > `+daemon+`; exit" TERM; kill -STOP $$; while :; do sleep 0.01; done' & sleep 1000`)
	guardtest.Eventually(t, "the daemon is stopped", func() bool { return slices.ContainsFunc(marked(s.mark), stopped) })
	s.tell(t)
	if got := s.exit(t); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if text, _ := os.ReadFile(daemon); string(text) != "asked\n" {
		t.Errorf("the daemon wrote %q; it was not asked", text)
	}
}

// The child ends and leaves processes behind: they are waited for, and people are told once.
func TestRest(t *testing.T) {
	s := launch(t, "--", "sh", "-c", "setsid sleep 1000 & exit 7")
	s.says(t, "event 1: 1 processes")
	var left []int
	guardtest.Eventually(t, "one process is left", func() bool { // unseen while setsid executes sleep
		left = marked(s.mark)
		return len(left) == 1
	})
	_ = syscall.Kill(left[0], syscall.SIGKILL)
	if got := s.exit(t); got != 7 {
		t.Errorf("exit status %d, want the child's 7", got)
	}
	if n := strings.Count(s.said(), "event"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}

// A signal that comes after the child's end goes to what is left.
func TestSignalToRest(t *testing.T) {
	s := launch(t, "--", "sh", "-c", "setsid sleep 1000 & exit 7")
	s.says(t, "event 1: 1 processes")
	_ = syscall.Kill(s.Process.Pid, syscall.SIGTERM)
	if got := s.exit(t); got != 7 {
		t.Errorf("exit status %d, want the child's 7", got)
	}
}

func TestKillRest(t *testing.T) {
	s := launch(t, "-killrest", "--", "sh", "-c", "setsid sleep 1000 & exit 7")
	if got := s.exit(t); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
	if left := marked(s.mark); len(left) > 0 {
		t.Errorf("processes %v are alive", left)
	}
}

// Close ends what runs, and reports no death of the guard.
func TestClose(t *testing.T) {
	s := launchTree(t, "-closes")
	s.tell(t)
	if got := s.exit(t); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if left := marked(s.mark); len(left) > 0 {
		t.Errorf("processes %v are alive", left)
	}
	if !strings.Contains(s.said(), "guard died: false") {
		t.Errorf("it said:\n%s", s.said())
	}
}

// What exec handed on as a child of interlock's is not interlock's to kill.
func TestChildrenFromBefore(t *testing.T) {
	s := prepare(t, "--", "sleep", "1000")
	line := strings.Join(s.Args, " ")
	s.Path, s.Args = "/bin/sh", []string{"sh", "-c", "OLD=" + s.mark + " sleep 1004 & exec " + line}
	s.start(t)
	s.says(t, "runs")
	old := 0
	guardtest.Eventually(t, "the child from before executes sleep", func() bool {
		for _, pid := range children(s.Process.Pid) {
			if environment(pid, "OLD="+s.mark) {
				old = pid
			}
		}
		return old != 0
	})
	defer func() { _ = syscall.Kill(old, syscall.SIGKILL) }()
	_ = syscall.Kill(s.guard(t), syscall.SIGKILL)
	if got := s.exit(t); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if !environment(old, "OLD="+s.mark) {
		t.Error("the child from before is dead")
	}
}

// A process named like the guard by hand says what it is and does nothing.
func TestGuardByHand(t *testing.T) {
	c := exec.Command(self(t))
	c.Args = []string{"interlock-guard", strconv.Itoa(77)}
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not by hand") {
		t.Errorf("error %v, output %q", err, out)
	}
}
