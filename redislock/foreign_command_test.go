//go:build linux || darwin

package redislock_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/foreigntest"
)

// command is the built command interlock.
type command struct {
	path  string
	store string
}

func buildCommand(t *testing.T, m meeting) command {
	t.Helper()
	c := command{path: filepath.Join(t.TempDir(), "interlock"), store: m.URL()}
	build := exec.Command("go", "build", "-o", c.path, "github.com/interlock-go/interlock/cmd/interlock")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return c
}

// run is interlock run with these arguments.
func (c command) run(args ...string) *exec.Cmd {
	return exec.Command(c.path, append([]string{"run", "--store", c.store}, args...)...)
}

// The command is kept out by a holder of another library, says so, and waits for it.
func TestForeignHolderKeepsCommandsOut(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	interlock := buildCommand(t, m)
	for _, theirs := range allTheirs(t, m, ages) {
		name := theirs.Key()
		theirs.MustLock(t, 0)
		try := interlock.run("--try", name, "--", "true")
		out, err := try.CombinedOutput()
		if try.ProcessState.ExitCode() != 75 || !strings.Contains(string(out), "is held by") {
			t.Errorf("%s holds: interlock run --try: %v, want exit status 75; %s", theirs.Kind(), err, out)
		}

		wait := interlock.run("--wait", ages.String(), name, "--", "echo", "ran")
		var said, complaint bytes.Buffer
		wait.Stdout, wait.Stderr = &said, &complaint
		if err := wait.Start(); err != nil {
			t.Fatal(err)
		}
		m.stand(t, name, 2)
		theirs.MustUnlock(t)
		if err := wait.Wait(); err != nil || said.String() != "ran\n" {
			t.Errorf("%s has released: interlock run: %v; it wrote %q; %s", theirs.Kind(), err, said.String(), complaint.String())
		}
	}
}

// While the command runs a program under a lock, other libraries are kept out; when the program has
// ended, they get in.
func TestCommandsKeepForeignOut(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	interlock := buildCommand(t, m)
	shapes := [][]string{nil, {"--shared"}, {"--permits", "2"}}
	if testing.Short() {
		shapes = shapes[:1]
	}
	for _, theirs := range allTheirs(t, m, ages) {
		for _, shape := range shapes {
			held := interlock.run(append(shape, theirs.Key(), "--", "cat")...) // which ends with its input
			in, err := held.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var complaint bytes.Buffer
			held.Stderr = &complaint
			if err := held.Start(); err != nil {
				t.Fatal(err)
			}
			m.stand(t, theirs.Key(), 1)
			theirs.MustNotLock(t, fmt.Sprintf("interlock run %v", shape))
			_ = in.Close()
			if err := held.Wait(); err != nil {
				t.Errorf("interlock run %v: %v: %s", shape, err, complaint.String())
			}
			theirs.MustLock(t, soon)
			theirs.MustUnlock(t)
		}
	}
}

// The same contest when ours are eight loops of the command, as in cron jobs: each time it is
// another process, and what was seen of the others is in the store.
func TestForeignContestOfCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	t.Parallel()
	m := newMeeting(t)
	interlock := buildCommand(t, m)
	c := newContest(t, m)
	python := m.theirs(t, foreigntest.RedisPy, "wanted", ages)
	c.joinTheirs(python)
	c.joinTheirs(m.theirs(t, foreigntest.Redsync, "wanted", ages))
	for i := range 8 {
		c.join(fmt.Sprintf("loop %d of the command", i), alone, interlock.lock)
	}
	m.meet(t, python)
	c.run(t, 10*time.Second)
}

// lock runs a program under the lock that says so and goes on until it is told to end.
func (c command) lock(over context.Context) (unlock func() error, err error) {
	end, _ := over.Deadline()
	held := c.run("--wait", max(time.Millisecond, time.Until(end)).String(), "wanted", "--", "sh", "-c", "echo here; cat")
	in, err := held.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := held.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var complaint bytes.Buffer
	held.Stderr = &complaint
	if err := held.Start(); err != nil {
		return nil, err
	}
	here := bufio.NewScanner(out).Scan()
	unlock = func() error {
		if err := errors.Join(in.Close(), held.Wait()); err != nil {
			return fmt.Errorf("interlock run: %w: %s", err, complaint.String())
		}
		return nil
	}
	if here {
		return unlock, nil
	}
	err = unlock()
	if held.ProcessState.ExitCode() == 75 {
		<-over.Done() // it waited until then
	}
	return nil, cmp.Or(err, errors.New("interlock run has not run its program"))
}
