package guard_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// SIGKILL comes before the lease is over by what killing may take on a busy machine, and where the
// grace is too short for that, at once.
func TestDeadlineAt(t *testing.T) {
	const until = int64(time.Hour)
	for _, c := range []struct{ grace, kill time.Duration }{
		{10 * time.Second, 9750 * time.Millisecond},
		{time.Second, 750 * time.Millisecond},
		{400 * time.Millisecond, 300 * time.Millisecond},
		{80 * time.Millisecond, 60 * time.Millisecond},
		{40 * time.Millisecond, 20 * time.Millisecond},
		{10 * time.Millisecond, 0},
		{0, 0},
	} {
		want := guard.Deadline{Term: until, Kill: until + int64(c.kill), End: until + int64(c.grace)}
		if got := guard.DeadlineAt(until, c.grace); got != want {
			t.Errorf("with a grace of %v SIGKILL comes %v after SIGTERM and the end %v, want %v and %v",
				c.grace, time.Duration(got.Kill-got.Term), time.Duration(got.End-got.Term), c.kill, c.grace)
		}
	}
}

// What ignores SIGTERM is killed at the kill time, not at the end: that is an hour away.
func TestKillTime(t *testing.T) {
	s := launchTree(t, "-grace", "1h", "-kill", "300ms")
	s.tell(t)
	if got := s.exitAfter(t, "the kill time"); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
	if left := marked(s.mark); len(left) > 0 {
		t.Errorf("processes %v are alive after interlock's end", left)
	}
}

// Once SIGTERM was sent a renewal that was under way moves the kill time no more.
func TestRenewalAfterLoss(t *testing.T) {
	s := launchTree(t, "-heedless", "-grace", "1h", "-kill", "300ms") // interlock stands in after half an hour
	s.tell(t)
	if got := s.exitAfter(t, "a renewal that came after SIGTERM"); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
}

// Nor does it make interlock wait longer for a guard that is stopped.
func TestRenewalAfterLossWithGuardStopped(t *testing.T) {
	s := launchTree(t, "-heedless")
	guard := s.guard(t)
	_ = syscall.Kill(guard, syscall.SIGSTOP)
	guardtest.Eventually(t, "the guard is stopped", func() bool { return stopped(guard) })
	s.tell(t)
	if got := s.exitAfter(t, "a renewal that came after SIGTERM, with its guard stopped"); got != exitLost {
		t.Errorf("exit status %d, want %d", got, exitLost)
	}
}

// A loss that is told before the command was handed over, as when its program is looked for on a
// disk that hangs, lets nothing be started.
func TestStopBeforeRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "started")
	s := prepare(t, "-stopped", "--", "touch", file)
	s.start(t)
	if got := s.exit(t); got != exitLate {
		t.Errorf("exit status %d, want %d", got, exitLate)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command was started after the loss")
	}
}

// SIGTERM reaches what is stopped, be it the child or what it has started: it is continued to clean
// up.
func TestTermContinues(t *testing.T) {
	for _, who := range []string{"child", "daemon"} {
		t.Run(who, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "asked")
			script := `trap 'echo asked > ` + file + `; exit' TERM; kill -STOP $$; while :; do sleep 0.01; done`
			command := script
			if who == "daemon" {
				command = `setsid sh -c "$DAEMON" & exec sleep 1005`
			}
			s := prepare(t, "-grace", "1h", "--", "sh", "-c", command)
			s.Env = append(os.Environ(), "DAEMON="+script)
			s.start(t)
			s.says(t, "runs")
			guardtest.Eventually(t, "the "+who+" is stopped", func() bool { return slices.ContainsFunc(marked(s.mark), stopped) })
			s.tell(t)
			if got := s.exitAfter(t, "SIGTERM to the stopped "+who); got != exitLost {
				t.Errorf("exit status %d, want %d", got, exitLost)
			}
			if text, _ := os.ReadFile(file); string(text) != "asked\n" {
				t.Errorf("the %s wrote %q; it was not asked", who, text)
			}
		})
	}
}

// tell has the supervisor do what it waits for: take the lock for lost, or what its flags say.
func (s *supervisor) tell(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(s.Process.Pid, syscall.SIGXCPU); err != nil {
		t.Fatal(err)
	}
}
