package guard_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/guard/nogc"
)

// The test binary is also the program that supervises, and so, executed again, the guard.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervise(os.Args[2:]))
	}
	// The race detector makes every process wait for a second at its end; there are hundreds here.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	guardtest.Heed()
	os.Exit(m.Run())
}

const (
	exitLost = 76
	exitLate = 70
)

// supervise is what a command does with the package: catch, start, run, renew, pass on, end as the
// child ended.
func supervise(args []string) int {
	f := flag.NewFlagSet("supervise", flag.ExitOnError)
	lease := f.Duration("lease", time.Hour, "time from a renewal to SIGTERM")
	grace := f.Duration("grace", 400*time.Millisecond, "time from SIGTERM until nothing may be left")
	kill := f.Duration("kill", 0, "time from SIGTERM until SIGKILL, 0: as the grace has it")
	renew := f.Duration("renew", 0, "period of renewals, 0: none")
	least := f.Duration("least", 0, "time that must be left at the start")
	inherit := f.String("inherit", "", "file to lock and hand on")
	mark := f.String("mark", "", "value of MARK in the command's environment")
	heedless := f.Bool("heedless", false, "renew for an hour after the loss was told")
	last := f.Duration("last", 0, "what SIGXCPU does instead of telling the loss: renew for so long, and then no more")
	halt := f.String("halt", "", "after that, stop: self, or the process group")
	closes := f.Bool("closes", false, "what SIGXCPU does instead: close the guard")
	early := f.Int("early", 0, "signal to send before the command runs")
	unheld := f.Bool("stopped", false, "tell the loss before the command is handed over")
	rest := f.Bool("killrest", false, "kill what the child leaves behind")
	own := f.Bool("ownstdio", false, "leave stdin and stdout to the command")
	_ = f.Parse(args)

	deadlineIn := func(d time.Duration) guard.Deadline {
		at := guard.DeadlineAt(guard.Now()+int64(d), *grace)
		if *kill > 0 {
			at.Kill = at.Term + int64(*kill)
		}
		return at
	}

	signals := guard.NewSignals()
	signals.CatchStops()
	signals.CatchAll()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGXCPU)
	g, err := guard.Start(guard.Config{PauseGC: nogc.Pause})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer g.Close()
	if *early != 0 {
		g.Signal(syscall.Signal(*early))
	}
	if *unheld {
		g.Stop(deadlineIn(0))
	}
	c := guard.Command{
		Args:     f.Args(),
		Env:      append(os.Environ(), "MARK="+*mark),
		Deadline: deadlineIn(*lease),
		Least:    *least,
		KillRest: *rest,
		OwnStdio: *own,
		Event: func(e guard.Event) {
			fmt.Fprintf(os.Stderr, "event %d: %d processes\n", e.Kind, len(e.Pids))
		},
	}
	if *inherit != "" {
		file, err := os.OpenFile(*inherit, os.O_RDWR, 0)
		if err == nil {
			err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		c.Inherit = []*os.File{file}
	}
	if err := g.Run(c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		var start *guard.StartError
		switch {
		case errors.As(err, &start):
			return start.ExitCode()
		case errors.Is(err, guard.ErrLate):
			return exitLate
		}
		return 1
	}
	fmt.Fprintln(os.Stderr, "runs")

	var ticks <-chan time.Time
	if *renew > 0 {
		ticks = time.NewTicker(*renew).C
	}
	for {
		select {
		case s := <-signals.C:
			sig := s.(syscall.Signal)
			g.Forward(sig)
			if guard.Stops(sig) {
				guard.StopSelf(nil)
				g.Forward(syscall.SIGCONT)
			}
		case <-ticks:
			if guard.Now() < c.Deadline.Term { // a lease that is over is not renewed
				c.Deadline = deadlineIn(*lease)
				g.SetDeadline(c.Deadline)
			}
		case <-told:
			switch {
			case *closes:
				g.Close()
			case *last > 0:
				ticks = nil
				g.SetDeadline(deadlineIn(*last))
				switch *halt { // at once: however slow the machine is, it is stopped before it could see the end
				case "self":
					_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				case "group":
					_ = syscall.Kill(0, syscall.SIGSTOP)
				}
			default:
				g.Stop(deadlineIn(0))
				if *heedless {
					g.SetDeadline(deadlineIn(time.Hour))
				}
			}
		case <-g.Done():
			state := g.Wait()
			switch {
			case state.Stopped:
				fmt.Fprintln(os.Stderr, "stopped; guard died:", state.GuardDied)
				return exitLost
			case state.Signal == syscall.SIGINT:
				guard.DieOf(syscall.SIGINT)
			}
			return state.ExitCode()
		}
	}
}

// self is the path of the test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// supervisor is a running program of supervise, without a terminal, in a process group of its own.
type supervisor struct {
	*exec.Cmd
	mark   string
	stderr string // path of the file with what it said
	ended  chan struct{}
}

// prepare returns a supervisor that is not started yet; args are flags and the command.
func prepare(t *testing.T, args ...string) *supervisor {
	t.Helper()
	mark := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
	s := &supervisor{
		Cmd:    exec.Command(self(t), append([]string{"supervise", "-mark", mark}, args...)...),
		mark:   mark,
		stderr: filepath.Join(t.TempDir(), "stderr"),
		ended:  make(chan struct{}),
	}
	stderr, err := os.Create(s.stderr)
	if err != nil {
		t.Fatal(err)
	}
	s.Cmd.Stderr = stderr
	s.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal even where the tests have one
	t.Cleanup(func() {
		_ = stderr.Close()
		for _, pid := range marked(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if s.Process != nil {
			_ = syscall.Kill(-s.Process.Pid, syscall.SIGKILL)
		}
	})
	return s
}

func (s *supervisor) start(t *testing.T) {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.Cmd.Wait() // exit looks at the state
		close(s.ended)
	}()
}

// launch starts a supervisor and waits until its command runs.
func launch(t *testing.T, args ...string) *supervisor {
	t.Helper()
	s := prepare(t, args...)
	s.start(t)
	s.says(t, "runs")
	return s
}

// says waits until the supervisor or its command has written a line to stderr.
func (s *supervisor) says(t *testing.T, line string) {
	t.Helper()
	guardtest.Eventually(t, "the line "+line, func() bool { return strings.Contains("\n"+s.said(), "\n"+line+"\n") })
}

func (s *supervisor) said() string {
	text, _ := os.ReadFile(s.stderr)
	return string(text)
}

// exit waits for the supervisor's end and returns its exit status as a shell shows it.
func (s *supervisor) exit(t *testing.T) int {
	t.Helper()
	return s.exitAfter(t, "")
}

// exitAfter is exit whose failure says after what.
func (s *supervisor) exitAfter(t *testing.T, what string) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(guardtest.Patience()):
		if what != "" {
			what = " after " + what
		}
		t.Fatalf("the supervisor still runs%s; it said:\n%s", what, s.said())
	}
	ws := s.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// guard returns the process id of the guard.
func (s *supervisor) guard(t *testing.T) int {
	t.Helper()
	return guardOf(t, s.Process.Pid)
}

func guardOf(t *testing.T, interlock int) int {
	t.Helper()
	for _, pid := range children(interlock) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(string(name), "interlock-guard\x00") {
			return pid
		}
	}
	t.Fatal("there is no guard")
	return 0
}

// child returns the process id of the command.
func (s *supervisor) child(t *testing.T) int {
	t.Helper()
	return s.childOf(t, s.guard(t))
}

func (s *supervisor) childOf(t *testing.T, guard int) int {
	t.Helper()
	child := 0
	guardtest.Eventually(t, "there is a child", func() bool { // unseen while a shell executes it
		for _, pid := range children(guard) {
			if environment(pid, "MARK="+s.mark) {
				child = pid
				return true // of those after it the guard is the reaper only
			}
		}
		return false
	})
	return child
}

func children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var pids []int
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(text)) {
			n, _ := strconv.Atoi(field)
			pids = append(pids, n)
		}
	}
	return pids
}

func environment(pid int, entry string) bool {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return strings.Contains("\x00"+string(env), "\x00"+entry+"\x00")
}

// marked lists the living processes of the command with this mark, wherever they went.
func marked(mark string) []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && environment(pid, "MARK="+mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stopped reports whether the process is stopped by a signal.
func stopped(pid int) bool { return state(pid) == "T" }

// state is the letter that the kernel has for what the process does, or "" where there is none.
func state(pid int) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:min(len(rest), 1)]
}
