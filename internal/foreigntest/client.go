package foreigntest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	startup = 30 * time.Second // for an interpreter to start, on a machine that has other things to do
	answer  = 20 * time.Second // for a command, beyond the time that it may wait
	leave   = 2 * time.Second  // for a client to end by itself
)

// ErrTimeout is what Lock returns when somebody else held the lock for as long as it could wait.
var ErrTimeout = errors.New("foreigntest: the lock was held by somebody else all the time")

// Client is a process with one lock of a foreign library. Its commands run one at a time, in the order in which they
// are called; all methods may be called from any goroutine.
type Client struct {
	kind    Kind
	name    string
	process *exec.Cmd
	in      io.WriteCloser
	lines   chan string   // what it answers; closed when there is nothing more to come
	deaf    chan struct{} // closed when nobody reads answers any more
	ended   chan struct{} // closed when the process is over
	stderr  bytes.Buffer  // to be read when it has ended

	mu     sync.Mutex // held for a command and its answer
	deafen sync.Once  // closes deaf
}

// Start runs a client for the lock of that name, whose holds last for the TTL, on the servers (HOST:PORT); more than one
// is for kinds that take a majority. With a TTL of 0, which only redis-py knows, a hold has no end. The test fails if the
// client cannot be run, and ends it.
func Start(t testing.TB, kind Kind, servers []string, name string, ttl time.Duration) *Client {
	t.Helper()
	if len(servers) == 0 || len(servers) > 1 && !kind.Many() {
		t.Fatalf("foreigntest: %s cannot lock on %d servers", kind, len(servers))
	}
	process, err := program(t, kind)
	if err != nil {
		t.Fatal(err)
	}
	process.Args = append(process.Args, strings.Join(servers, ","), name, milliseconds(ttl))
	c := &Client{kind: kind, name: name, process: process, lines: make(chan string), deaf: make(chan struct{}), ended: make(chan struct{})}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.expect("READY", startup); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Client) start() error {
	c.process.Stderr = &c.stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.process.Start(); err != nil {
		return fmt.Errorf("foreigntest: run %s: %w", c.kind, err)
	}
	c.in = in
	go c.listen(out)
	return nil
}

// listen hands on what the client answers until it has ended.
func (c *Client) listen(out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		select {
		case c.lines <- s.Text():
		case <-c.deaf: // a line that nobody asked for must not keep the end of the process from being seen
		}
	}
	_ = c.process.Wait() // how it ended is in what it wrote
	close(c.ended)
	close(c.lines)
}

// Kind returns what the client is.
func (c *Client) Kind() Kind { return c.kind }

// Key returns the key to which it writes its lock.
func (c *Client) Key() string { return c.kind.Key(c.name) }

// Lock takes the lock, waits for it at most so long, and returns what the client has written to the key. A wait of 0
// tries once. The error is ErrTimeout if somebody else held it.
func (c *Client) Lock(wait time.Duration) (value string, err error) {
	line, err := c.ask("lock "+milliseconds(wait), wait+answer)
	switch word, rest, _ := strings.Cut(line, " "); {
	case err != nil:
		return "", err
	case word == "LOCKED":
		if value, ok := strings.CutPrefix(rest, c.Key()+"="); ok {
			return value, nil
		}
	case word == "TIMEOUT":
		return "", ErrTimeout
	}
	return "", c.refused("lock", line)
}

// Unlock releases the lock. Most clients, not all, return an error when they do not hold it any more.
func (c *Client) Unlock() error { return c.do("unlock", "UNLOCKED") }

// Extend lets the hold end so long from now.
func (c *Client) Extend(d time.Duration) error { return c.do("extend "+milliseconds(d), "EXTENDED") }

// Kill ends the process with SIGKILL. What it held stays in the store for the rest of its TTL.
func (c *Client) Kill() {
	c.deafen.Do(func() { close(c.deaf) })
	_ = c.process.Process.Kill() // unless it has ended
	<-c.ended
}

// Close ends the process, which does not unlock what it holds.
func (c *Client) Close() {
	c.deafen.Do(func() { close(c.deaf) })
	_ = c.in.Close()
	timer := time.NewTimer(leave)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.Kill()
	}
}

func (c *Client) do(command, want string) error {
	line, err := c.ask(command, answer)
	if err == nil && line != want {
		err = c.refused(command, line)
	}
	return err
}

func (c *Client) ask(command string, limit time.Duration) (line string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.in, command+"\n") // what fails only when the process is over, and next says how that ended
	return c.next(limit)
}

func (c *Client) expect(want string, limit time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, err := c.next(limit)
	if err == nil && line != want {
		err = c.refused("start", line)
	}
	return err
}

// next returns the next line. A client that misses the time is killed, or its late answer would be taken for that to the
// next command.
func (c *Client) next(limit time.Duration) (string, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line, ok := <-c.lines:
		if !ok {
			return "", fmt.Errorf("foreigntest: %s has ended (%v): %s", c.kind, c.process.ProcessState, strings.TrimSpace(c.stderr.String()))
		}
		return line, nil
	case <-timer.C:
		c.Kill()
		return "", fmt.Errorf("foreigntest: %s did not answer for %v: %s", c.kind, limit, strings.TrimSpace(c.stderr.String()))
	}
}

func (c *Client) refused(command, line string) error {
	return fmt.Errorf("foreigntest: %s: %s: %s", c.kind, command, strings.TrimPrefix(line, "ERR "))
}

// milliseconds rounds up: a time that is not 0 must not become 0.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt((d + time.Millisecond - 1).Milliseconds(), 10)
}
