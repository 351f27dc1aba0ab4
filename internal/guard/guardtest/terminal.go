//go:build linux || darwin

// Package guardtest is a person at a terminal, for tests of job control: programs that run in a
// terminal of their own, keys, and a screen.
package guardtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Heed makes the programs that this process starts heed hangups and the keys of a terminal.
// Programs inherit that a signal is ignored, from nohup or from a shell that starts a job in the
// background, but not that it is caught.
func Heed() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// Terminal is a person at a terminal in which a program runs.
type Terminal struct {
	*exec.Cmd
	keys *os.File

	mu     sync.Mutex
	screen bytes.Buffer
}

// Open runs the program in a new terminal, as the leader of its session, with env in its
// environment. It heeds the keys.
func Open(t *testing.T, env []string, program string, args ...string) *Terminal {
	t.Helper()
	Heed()
	c := &Terminal{Cmd: exec.Command(program, args...)}
	c.Env = append(append(os.Environ(), "PS1=$ ", "TERM=dumb"), env...)
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
		_ = keys.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// Shell opens an interactive bash, which has job control.
func Shell(t *testing.T, env ...string) *Terminal {
	t.Helper()
	c := Open(t, env, "bash", "--norc", "--noprofile", "-i")
	c.Shows(t, "$ ")
	return c
}

// Keys.
const (
	CtrlC = "\x03"
	CtrlZ = "\x1a"
	CtrlD = "\x04"
)

// Press types keys.
func (c *Terminal) Press(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// Shown is what the screen shows.
func (c *Terminal) Shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

// Shows waits until the screen shows the text, and then clears what is before it and the text
// itself.
func (c *Terminal) Shows(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the screen shows:\n%s", c.Shown())
		}
	}()
	Eventually(t, fmt.Sprintf("the screen shows %q", text), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := bytes.Index(c.screen.Bytes(), []byte(text))
		if i >= 0 {
			c.screen.Next(i + len(text))
		}
		return i >= 0
	})
}

// Answers waits until the shell answers again, after a job has stopped or ended. What is typed
// while it takes the terminal back may be lost, so it is asked more than once.
func (c *Terminal) Answers(t *testing.T) {
	t.Helper()
	asked := time.Time{}
	Eventually(t, "the shell answers", func() bool {
		if time.Since(asked) > time.Second {
			asked = time.Now()
			c.Press(t, "echo an''swer\n")
		}
		return strings.Contains(c.Shown(), "answer\n$ ")
	})
	c.Shows(t, "answer\n$ ")
}

// Ends waits for the program's end and returns its exit status as a shell shows it.
func (c *Terminal) Ends(t *testing.T) int {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	Eventually(t, "the program's end", func() bool {
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

// Patience is how long that which must happen at all may take, on however slow a machine. With a
// seeded bug it mostly never happens.
func Patience() time.Duration {
	if os.Getenv("INTERLOCK_BUG") != "" {
		return 6 * time.Second
	}
	return 30 * time.Second
}

// Eventually polls until the condition holds.
func Eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience()); !condition(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", Patience(), what)
		}
	}
}
