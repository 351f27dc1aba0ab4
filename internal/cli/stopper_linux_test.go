package cli_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

const starts = 60

// stopper is a shell that stops its job and continues it all the time while it starts, as Ctrl-Z
// and fg do. Every other time it kills interlock when what the guard has forked is stopped, too. A
// process forks by a copy of itself, and until that executes another program the thread that forked
// sleeps: if the copy is stopped then, the thread can neither be stopped nor do anything. Nor can
// the process, if it collects garbage at that moment, so there is always some to collect.
func stopper() {
	for i := range starts {
		err := stopAndContinue(i%2 == 1)
		fmt.Printf("start %d: %v\n", i, err)
		if err != nil {
			os.Exit(1)
		}
	}
}

func stopAndContinue(kill bool) error {
	job := exec.Command("interlock", "run", "--wait", (guardtest.Patience() / 2).String(), "job", "--", "true")
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.Env = append(os.Environ(), "GOGC=1")
	job.SysProcAttr = &syscall.SysProcAttr{Foreground: true}
	if err := job.Start(); err != nil {
		return err
	}
	pid := job.Process.Pid
	for {
		_ = unix.Kill(-pid, unix.SIGTSTP)
		ws, err := changed(pid)
		switch {
		case err != nil:
			return err
		case ws.Exited() && ws.ExitStatus() != 0:
			return fmt.Errorf("it ended with %d", ws.ExitStatus())
		case !ws.Stopped():
			return nil
		}
		if kill {
			if copied := forked(pid); copied != 0 {
				_ = unix.Kill(pid, unix.SIGKILL)
				_, err := changed(pid)
				return errors.Join(err, ends(copied))
			}
		}
		_ = unix.Kill(-pid, unix.SIGCONT)
		pause := time.Now().Add(time.Duration(rand.IntN(400)) * time.Microsecond)
		for time.Now().Before(pause) { // a timer is coarser than what is to be met
		}
	}
}

// forked goes on stopping the group of a stopped interlock for a moment, in which its guard may
// fork, and returns what the guard has forked if that is stopped, else 0.
func forked(pid int) int {
	for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
		_ = unix.Kill(-pid, unix.SIGTSTP)
	}
	for _, guard := range children(pid) {
		for _, copied := range children(guard) {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", copied))
			if strings.Contains(string(stat), fmt.Sprintf(") T %d %d ", guard, pid)) {
				return copied
			}
		}
	}
	return 0
}

// ends waits until the process is gone.
func ends(pid int) error {
	for end := time.Now().Add(guardtest.Patience() / 2); unix.Kill(pid, 0) == nil; <-time.NewTimer(time.Millisecond).C {
		if time.Now().After(end) {
			_ = unix.Kill(pid, unix.SIGKILL)
			return errors.New("what the guard had forked outlives interlock")
		}
	}
	return nil
}

func children(pid int) (pids []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// changed waits until the process has stopped or ended.
func changed(pid int) (unix.WaitStatus, error) {
	var ws unix.WaitStatus
	patience := guardtest.Patience() / 2
	for end := time.Now().Add(patience); ; {
		if got, err := unix.Wait4(pid, &ws, unix.WUNTRACED|unix.WNOHANG, nil); got == pid || err != nil {
			return ws, err
		}
		if time.Now().After(end) {
			seen := condition(pid)
			for _, guard := range children(pid) {
				seen += condition(guard)
				for _, copied := range children(guard) {
					seen += condition(copied)
					_ = unix.Kill(copied, unix.SIGKILL)
				}
				_ = unix.Kill(guard, unix.SIGKILL)
			}
			_ = unix.Kill(-pid, unix.SIGKILL)
			return ws, fmt.Errorf("it has neither stopped nor ended after %v: %s", patience, seen)
		}
		<-time.NewTimer(20 * time.Microsecond).C
	}
}

// condition says on one line what the threads of a process do, and which signals wait for them, are
// blocked and caught.
func condition(pid int) (seen string) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, dir := range threads {
		status, _ := os.ReadFile(dir + "/status")
		wait, _ := os.ReadFile(dir + "/wchan")
		seen += fmt.Sprintf("[%s %s", strings.TrimPrefix(dir, "/proc/"), wait)
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			switch name {
			case "Name", "State", "SigPnd", "ShdPnd", "SigBlk", "SigCgt":
				seen += " " + name + "=" + strings.TrimSpace(value)
			}
		}
		seen += "] "
	}
	return seen
}

// Ctrl-Z at any moment of the start stops it, and nothing that is stopped then outlives it.
func TestStoppedWhileItForks(t *testing.T) {
	p := sit(t, "stopper")
	for i := range starts {
		p.Shows(t, fmt.Sprintf("start %d: ", i))
		guardtest.Eventually(t, "it says how that went", func() bool { return strings.Contains(p.Shown(), "\n") })
		if s := p.Shown(); !strings.HasPrefix(s, "<nil>") {
			t.Fatal(s)
		}
	}
}
