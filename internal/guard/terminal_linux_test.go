package guard_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// terminal is a person at a terminal in which a program runs.
type terminal struct {
	*exec.Cmd
	keys *os.File
	mark string

	mu     sync.Mutex
	screen bytes.Buffer
}

// open runs the program in a new terminal, as the leader of its session.
func open(t *testing.T, program string, args ...string) *terminal {
	t.Helper()
	c := &terminal{Cmd: exec.Command(program, args...), mark: fmt.Sprintf("%s-%d", t.Name(), os.Getpid())}
	c.Env = append(os.Environ(), "PS1=$ ", "TERM=dumb", "SUP="+self(t)+" supervise -mark "+c.mark)
	keys, err := pty.Start(c.Cmd)
	if err != nil {
		t.Fatal(err)
	}
	c.keys = keys
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := keys.Read(buf)
			c.mu.Lock()
			c.screen.Write(bytes.ReplaceAll(buf[:n], []byte("\r"), nil))
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		for _, pid := range marked(c.mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = keys.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// shell opens an interactive bash, which has job control.
func shell(t *testing.T) *terminal {
	t.Helper()
	c := open(t, "bash", "--norc", "--noprofile", "-i")
	c.shows(t, "$ ")
	return c
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
	ctrlD = "\x04"
)

func (c *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

func (c *terminal) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

// shows waits until the screen shows the text, and then clears what is before it and the text itself.
func (c *terminal) shows(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the screen shows:\n%s", c.shown())
		}
	}()
	eventually(t, fmt.Sprintf("the screen shows %q", text), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := bytes.Index(c.screen.Bytes(), []byte(text))
		if i >= 0 {
			c.screen.Next(i + len(text))
		}
		return i >= 0
	})
}

// ends waits for the program's end and returns its exit status as a shell shows it.
func (c *terminal) ends(t *testing.T) int {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	eventually(t, "the program's end", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	ws := c.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

func TestCtrlC(t *testing.T) {
	c := open(t, "sh", "-c", "exec $SUP -- sleep 1000")
	c.shows(t, "runs")
	c.press(t, ctrlC)
	if got := c.ends(t); got != 130 {
		t.Errorf("exit status %d, want 130", got)
	}
}

// A command that handles Ctrl-C gets it once, and its own exit status counts.
func TestCtrlCHandled(t *testing.T) {
	c := open(t, "sh", "-c", `exec $SUP -- bash -c 'trap "echo hit" INT; read line; exit 7'`)
	c.shows(t, "runs")
	c.press(t, ctrlC)
	c.shows(t, "hit")
	c.press(t, "\n")
	if got := c.ends(t); got != 7 || strings.Contains(c.shown(), "hit") {
		t.Errorf("exit status %d, want 7; then the screen showed %q", got, c.shown())
	}
}

// Ctrl-C ends the script around the command, too: it is in the foreground with it.
func TestCtrlCEndsScript(t *testing.T) {
	for _, sh := range []string{"sh", "bash"} {
		t.Run(sh, func(t *testing.T) {
			c := open(t, sh, "-c", "$SUP -- sleep 1000; echo AFT''ER")
			c.shows(t, "runs")
			c.press(t, ctrlC)
			if got := c.ends(t); got != 130 || strings.Contains(c.shown(), "AFTER") {
				t.Errorf("exit status %d, want 130; the screen shows %q", got, c.shown())
			}
		})
	}
}

// A loop ends as well: bash looks whether the command died of SIGINT.
func TestCtrlCEndsLoop(t *testing.T) {
	c := open(t, "bash", "-c", "for i in 1 2 3; do $SUP -- sleep 1000; echo ROUND $i; done; echo AFT''ER")
	c.shows(t, "runs")
	c.press(t, ctrlC)
	if got := c.ends(t); got != 130 || strings.Contains(c.shown(), "ROUND") || strings.Contains(c.shown(), "AFTER") {
		t.Errorf("exit status %d, want 130; the screen shows %q", got, c.shown())
	}
}

func TestReadTerminal(t *testing.T) {
	c := shell(t)
	c.press(t, "$SUP -- cat\n")
	c.shows(t, "runs")
	c.press(t, "hello\n")
	c.shows(t, "hello")
	c.shows(t, "hello")
	c.press(t, ctrlD)
	c.shows(t, "$ ")
	c.press(t, "echo status $?\n")
	c.shows(t, "status 0")
}

// Ctrl-Z stops interlock and the child, fg continues both (C5).
func TestCtrlZ(t *testing.T) {
	c := shell(t)
	c.press(t, "$SUP -- cat\n")
	c.shows(t, "runs")
	c.press(t, ctrlZ)
	c.shows(t, "Stopped")
	c.shows(t, "$ ")
	for _, pid := range marked(c.mark) {
		if !stopped(pid) {
			t.Error("the child is not stopped")
		}
	}
	c.press(t, "fg\n")
	c.shows(t, "SUP")
	c.press(t, "hello\n")
	c.shows(t, "hello")
	c.shows(t, "hello")
	c.press(t, ctrlC)
	c.shows(t, "$ ")
	c.press(t, "echo status $?\n")
	c.shows(t, "status 130")
}

// Ctrl-Z for longer than the lease: the tree is dead, and fg shows the loss (C5).
func TestCtrlZTooLong(t *testing.T) {
	c := shell(t)
	c.press(t, "$SUP -lease 1s -renew 100ms -- cat\n")
	c.shows(t, "runs")
	c.press(t, ctrlZ)
	c.shows(t, "Stopped")
	eventually(t, "the child is dead", func() bool { return len(marked(c.mark)) == 0 })
	c.press(t, "fg\n")
	c.shows(t, "stopped; guard died: false")
	c.shows(t, "$ ")
	c.press(t, "echo status $?\n")
	c.shows(t, "status 76")
}

// In the background, reading the terminal stops the job as it does any other; fg lets it read.
func TestBackgroundReads(t *testing.T) {
	c := shell(t)
	c.press(t, "$SUP -- cat &\n")
	c.shows(t, "runs")
	eventually(t, "the child is stopped", func() bool {
		pids := marked(c.mark)
		return len(pids) == 1 && stopped(pids[0])
	})
	c.press(t, "\n")
	c.shows(t, "Stopped")
	c.shows(t, "cat\n")
	c.press(t, "fg\n")
	c.shows(t, "SUP")
	c.press(t, "hello\n")
	c.shows(t, "hello")
	c.shows(t, "hello")
	c.press(t, ctrlD)
	c.shows(t, "$ ")
}

// A pipeline in a shell with job control: all its parts are one job.
func TestPipelineOnTerminal(t *testing.T) {
	c := shell(t)
	c.press(t, "seq 3 | $SUP -ownstdio -- tac 2>&- | tr '\\n' '-'; echo status ${PIPESTATUS[*]}\n")
	c.shows(t, "3-2-1-status 0 0 0")
	c.press(t, "yes | $SUP -ownstdio -- cat 2>&- | head -1; echo status ${PIPESTATUS[*]}\n")
	c.shows(t, "status 141 141 0")
}

func TestKillJob(t *testing.T) {
	c := shell(t)
	c.press(t, "$SUP -- sleep 1000 &\n")
	c.shows(t, "runs")
	c.press(t, "kill %1\n")
	eventually(t, "the child is dead", func() bool { return len(marked(c.mark)) == 0 })
	c.press(t, "wait %1; echo status $?\n")
	c.shows(t, "status 143")
}

func TestHangup(t *testing.T) {
	c := shell(t)
	c.press(t, "$SUP -- sleep 1000\n")
	c.shows(t, "runs")
	_ = c.Process.Kill() // the session's leader: the kernel hangs up on the foreground
	eventually(t, "the child is dead", func() bool { return len(marked(c.mark)) == 0 })
}
