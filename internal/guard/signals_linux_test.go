package guard_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// Signals are passed on; what the guard does for itself does not reach the child: it ends by
// SIGTERM (C7).
func TestSignalsPassedOn(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		want int
	}{
		{syscall.SIGTERM, 143},
		{syscall.SIGHUP, 129},
		{syscall.SIGINT, 130},
		{syscall.SIGQUIT, 131},
		{syscall.SIGUSR1, 138},
		{syscall.SIGUSR2, 140},
		{syscall.SIGALRM, 142},
		{syscall.SIGVTALRM, 154},
		{syscall.SIGIO, 157},
		{syscall.SIGPWR, 158},
	} {
		t.Run(c.sig.String(), func(t *testing.T) {
			s := launch(t, "--", "sleep", "1000")
			_ = syscall.Kill(s.Process.Pid, c.sig)
			if got := s.exit(t); got != c.want {
				t.Errorf("exit status %d, want %d; it said:\n%s", got, c.want, s.said())
			}
		})
	}
}

// Without a terminal its signals are the program's own: servers start and stop workers by them.
func TestSignalsOfTerminalPassedOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGWINCH, syscall.SIGTTIN, syscall.SIGTTOU} {
		t.Run(sig.String(), func(t *testing.T) {
			s := launch(t, "--", "sh", "-c", `trap 'exit 7' WINCH TTIN TTOU; echo ready >&2; while :; do sleep 0.01; done`)
			s.says(t, "ready")
			_ = syscall.Kill(s.Process.Pid, sig)
			if got := s.exit(t); got != 7 {
				t.Errorf("exit status %d, want the child's 7; it said:\n%s", got, s.said())
			}
		})
	}
}

// Without a terminal a signal reaches the whole group of the child, as Ctrl-C would with one.
func TestSignalReachesGroup(t *testing.T) {
	s := launch(t, "--", "sh", "-c", "sleep 1000; exit 7")
	guardtest.Eventually(t, "two processes", func() bool { return len(marked(s.mark)) == 2 })
	_ = syscall.Kill(s.Process.Pid, syscall.SIGTERM)
	if got := s.exitAfter(t, "SIGTERM to interlock"); got != 143 || len(marked(s.mark)) > 0 {
		t.Errorf("exit status %d, want 143; %d processes are left", got, len(marked(s.mark)))
	}
}

// A signal that comes before the child exists is delivered when it does.
func TestEarlySignal(t *testing.T) {
	s := launch(t, "-early", "15", "--", "sleep", "1000")
	if got := s.exitAfter(t, "SIGTERM from before the command"); got != 143 {
		t.Errorf("exit status %d, want 143", got)
	}
}

// What ends a whole unit (systemd's stop) does not end the guard before the child.
func TestGuardSurvivesSignals(t *testing.T) {
	s := launch(t, "--", "sh", "-c", `trap 'sleep 0.2; exit 7' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	s.says(t, "ready")
	guard := s.guard(t)
	for _, sig := range []syscall.Signal{
		syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGALRM, syscall.SIGTSTP,
	} {
		_ = syscall.Kill(guard, sig)
	}
	_ = syscall.Kill(s.Process.Pid, syscall.SIGTERM)
	if got := s.exit(t); got != 7 {
		t.Errorf("exit status %d, want the child's 7; it said:\n%s", got, s.said())
	}
}

// The child's signals are as they were: what was ignored stays so (nohup), and nothing else is
// ignored or blocked.
func TestDispositions(t *testing.T) {
	const look = "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status"
	for _, ignoring := range []string{"", "HUP", "INT", "HUP INT TSTP TTIN TTOU"} {
		t.Run(ignoring, func(t *testing.T) {
			trap := "trap '' " + ignoring + "; "
			if ignoring == "" {
				trap = ""
			}
			direct, err := exec.Command("sh", "-c", trap+look).Output()
			if err != nil {
				t.Fatal(err)
			}
			guarded := exec.Command("sh", "-c", trap+self(t)+" supervise -- "+look)
			guarded.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			through, err := guarded.Output()
			if err != nil {
				t.Fatal(err)
			}
			if string(through) != string(direct) {
				t.Errorf("directly:\n%s\nguarded:\n%s", direct, through)
			}
			if got, want := ignored(t, through), ignored(t, direct); got&^want != 0 {
				t.Errorf("the guarded command ignores the signals %#x, which it would not directly", got&^want)
			} else if want&^got != 0 {
				t.Errorf("the guarded command does not ignore the signals %#x, which it would directly", want&^got)
			}
		})
	}
}

// ignored returns the set of ignored signals in the text of a process's status.
func ignored(t *testing.T, status []byte) (set uint64) {
	t.Helper()
	_, mask, _ := strings.Cut(string(status), "SigIgn:")
	if _, err := fmt.Sscanf(mask, "%x", &set); err != nil {
		t.Fatalf("%v in the status %q", err, status)
	}
	return set
}

func TestNohup(t *testing.T) {
	s := prepare(t, "--", "sleep", "1000")
	s.Path, s.Args = "/bin/sh", []string{"sh", "-c", "trap '' HUP; exec " + strings.Join(s.Args, " ")}
	s.start(t)
	s.says(t, "runs")
	for _, pid := range []int{s.guard(t), s.child(t), s.Process.Pid} {
		_ = syscall.Kill(pid, syscall.SIGHUP)
	}
	_ = syscall.Kill(s.Process.Pid, syscall.SIGTERM)
	if got := s.exit(t); got != 143 {
		t.Errorf("exit status %d, want 143: SIGHUP ended it", got)
	}
}

// Without a terminal the child has a group of its own, and is stopped and continued along with
// interlock (C5). The shell's job control puts interlock into a group that is not orphaned: the
// kernel would not stop that.
func TestStopAndContinue(t *testing.T) {
	s := prepare(t, "--", "sleep", "1000")
	s.Path, s.Args = "/bin/bash", []string{"bash", "-c", "set -m; " + strings.Join(s.Args, " ") + "& read line"}
	if _, err := s.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	s.says(t, "runs")
	interlock := children(s.Process.Pid)[0]
	child := s.childOf(t, guardOf(t, interlock))
	_ = syscall.Kill(interlock, syscall.SIGTSTP)
	guardtest.Eventually(t, "both are stopped", func() bool { return stopped(child) && stopped(interlock) })
	_ = syscall.Kill(interlock, syscall.SIGCONT)
	guardtest.Eventually(t, "both are continued", func() bool { return !stopped(child) && !stopped(interlock) })
	_ = syscall.Kill(interlock, syscall.SIGTERM)
	guardtest.Eventually(t, "the child is dead", gone(s))
}

// In an orphaned process group, where nobody could continue it, SIGTSTP stops neither.
func TestStopOfOrphans(t *testing.T) {
	s := launch(t, "--", "sh", "-c", "trap 'exit 7' USR1; echo ready >&2; while :; do sleep 0.01; done")
	s.says(t, "ready")
	_ = syscall.Kill(s.Process.Pid, syscall.SIGTSTP)
	_ = syscall.Kill(s.Process.Pid, syscall.SIGUSR1)
	if got := s.exit(t); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
}

// What ignores SIGHUP, as nohup does, leaves that to all programs below it; the tests say what
// hangups do all the same.
func TestUnderNohup(t *testing.T) {
	cmd := exec.Command("sh", "-c", `trap '' HUP; exec "$0" "$@"`, os.Args[0], "-test.run=^(TestHangup|TestSignalsPassedOn)$", "-test.v")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHangup") {
		t.Errorf("%v:\n%s", err, out)
	}
}
