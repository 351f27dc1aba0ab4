package guard_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// terminal is a person at a terminal, who finds the supervisor in $SUP.
type terminal struct {
	*guardtest.Terminal
	mark string
}

func open(t *testing.T, program string, args ...string) *terminal {
	t.Helper()
	mark, env := marks(t)
	return &terminal{guardtest.Open(t, env, program, args...), mark}
}

func shell(t *testing.T) *terminal {
	t.Helper()
	mark, env := marks(t)
	return &terminal{guardtest.Shell(t, env...), mark}
}

// marks returns a mark for the processes of a test, and the environment in which $SUP gives it to
// its command.
func marks(t *testing.T) (mark string, env []string) {
	t.Helper()
	mark = fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
	t.Cleanup(func() {
		for _, pid := range marked(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return mark, []string{"SUP=" + self(t) + " supervise -mark " + mark}
}

func TestCtrlC(t *testing.T) {
	c := open(t, "sh", "-c", "exec $SUP -- sleep 1000")
	c.Shows(t, "runs")
	c.Press(t, guardtest.CtrlC)
	if got := c.Ends(t); got != 130 {
		t.Errorf("exit status %d, want 130", got)
	}
}

// A command that handles Ctrl-C gets it once, and its own exit status counts. Only a Ctrl-C within
// a moment of the start, which may have missed the command, is passed on as well.
func TestCtrlCHandled(t *testing.T) {
	c := open(t, "sh", "-c", `exec $SUP -- bash -c 'trap "echo hit" INT; sleep 0.5; echo ready; read line; exit 7'`)
	c.Shows(t, "ready")
	c.Press(t, guardtest.CtrlC)
	c.Shows(t, "hit")
	c.Press(t, "\n")
	if got := c.Ends(t); got != 7 || strings.Contains(c.Shown(), "hit") {
		t.Errorf("exit status %d, want 7; then the screen showed %q", got, c.Shown())
	}
}

// Ctrl-C ends the script around the command, too: it is in the foreground with it.
func TestCtrlCEndsScript(t *testing.T) {
	for _, sh := range []string{"sh", "bash"} {
		t.Run(sh, func(t *testing.T) {
			c := open(t, sh, "-c", "$SUP -- sleep 1000; echo AFT''ER")
			c.Shows(t, "runs")
			c.Press(t, guardtest.CtrlC)
			if got := c.Ends(t); got != 130 || strings.Contains(c.Shown(), "AFTER") {
				t.Errorf("the script ended with %d, want 130 of Ctrl-C; the screen shows %q", got, c.Shown())
			}
		})
	}
}

// A loop ends as well: bash looks whether the command died of SIGINT.
func TestCtrlCEndsLoop(t *testing.T) {
	c := open(t, "bash", "-c", "for i in 1 2 3; do $SUP -- sleep 1000; echo ROUND $i; done; echo AFT''ER")
	c.Shows(t, "runs")
	c.Press(t, guardtest.CtrlC)
	if got := c.Ends(t); got != 130 || strings.Contains(c.Shown(), "ROUND") || strings.Contains(c.Shown(), "AFTER") {
		t.Errorf("exit status %d, want 130; the screen shows %q", got, c.Shown())
	}
}

func TestReadTerminal(t *testing.T) {
	c := shell(t)
	c.Press(t, "$SUP -- cat\n")
	c.Shows(t, "runs")
	c.Press(t, "hello\n")
	c.Shows(t, "hello")
	c.Shows(t, "hello")
	c.Press(t, guardtest.CtrlD)
	c.Shows(t, "$ ")
	c.Press(t, "echo status $?\n")
	c.Shows(t, "status 0")
}

// Ctrl-Z stops interlock and the child, fg continues both (C5).
func TestCtrlZ(t *testing.T) {
	c := shell(t)
	c.Press(t, "$SUP -- cat\n")
	c.Shows(t, "runs")
	c.Press(t, guardtest.CtrlZ)
	c.Shows(t, "Stopped")
	c.Answers(t)
	for _, pid := range marked(c.mark) {
		if !stopped(pid) {
			t.Error("the child is not stopped")
		}
	}
	c.Press(t, "fg\n")
	c.Shows(t, "SUP")
	c.Press(t, "hello\n")
	c.Shows(t, "hello")
	c.Shows(t, "hello")
	c.Press(t, guardtest.CtrlC)
	c.Shows(t, "$ ")
	c.Press(t, "echo status $?\n")
	c.Shows(t, "status 130")
}

// Ctrl-Z for longer than the lease: the tree is dead, and fg shows the loss (C5).
func TestCtrlZTooLong(t *testing.T) {
	c := shell(t)
	c.Press(t, "$SUP -lease 1s -renew 100ms -- cat\n")
	c.Shows(t, "runs")
	c.Press(t, guardtest.CtrlZ)
	c.Shows(t, "Stopped")
	c.Answers(t)
	guardtest.Eventually(t, "the child is dead", func() bool { return len(marked(c.mark)) == 0 })
	c.Press(t, "fg\n")
	c.Shows(t, "stopped; guard died: false")
	c.Shows(t, "$ ")
	c.Press(t, "echo status $?\n")
	c.Shows(t, "status 76")
}

// In the background, reading the terminal stops the job as it does any other; fg lets it read.
func TestBackgroundReads(t *testing.T) {
	c := shell(t)
	c.Press(t, "$SUP -- cat &\n")
	c.Shows(t, "runs")
	c.Press(t, "until jobs | grep Stopped; do sleep 0.01; done\n") // typed once: what is typed ahead would go to cat
	c.Shows(t, "cat\n$ ")
	c.Press(t, "fg\n")
	c.Shows(t, "SUP")
	c.Press(t, "hello\n")
	c.Shows(t, "hello")
	c.Shows(t, "hello")
	c.Press(t, guardtest.CtrlD)
	c.Shows(t, "$ ")
}

// A pipeline in a shell with job control: all its parts are one job.
func TestPipelineOnTerminal(t *testing.T) {
	c := shell(t)
	c.Press(t, "seq 3 | $SUP -ownstdio -- tac 2>&- | tr '\\n' '-'; echo status ${PIPESTATUS[*]}\n")
	c.Shows(t, "3-2-1-status 0 0 0")
	c.Press(t, "yes | $SUP -ownstdio -- cat 2>&- | head -1; echo status ${PIPESTATUS[*]}\n")
	c.Shows(t, "status 141 141 0")
}

func TestKillJob(t *testing.T) {
	c := shell(t)
	c.Press(t, "$SUP -- sleep 1000 &\n")
	c.Shows(t, "runs")
	c.Press(t, "kill %1\n")
	guardtest.Eventually(t, "the child is dead", func() bool { return len(marked(c.mark)) == 0 })
	c.Press(t, "wait %1; echo status $?\n")
	c.Shows(t, "status 143")
}

func TestHangup(t *testing.T) {
	c := shell(t)
	c.Press(t, "$SUP -- sleep 1000\n")
	c.Shows(t, "runs")
	_ = c.Process.Kill() // the session's leader: the kernel hangs up on the foreground
	guardtest.Eventually(t, "the child is dead", func() bool { return len(marked(c.mark)) == 0 })
}
