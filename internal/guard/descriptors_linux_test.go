package guard_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// What the user passes at 3, 4 and 9 arrives there, whatever the guard itself has open.
func TestUsersDescriptors(t *testing.T) {
	session := filepath.Join(t.TempDir(), "session")
	if err := os.WriteFile(session, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := prepare(t, "-inherit", session, "--", "sh", "-c", "cat <&3; cat <&4; cat <&9; test ! -e /proc/self/fd/5")
	s.ExtraFiles = make([]*os.File, 7)
	for _, fd := range []int{3, 4, 9} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(strconv.Itoa(fd)), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s.ExtraFiles[fd-3] = f
	}
	var out bytes.Buffer
	s.Stdout = &out
	s.start(t)
	if got := s.exit(t); got != 0 || out.String() != "349" {
		t.Errorf("exit status %d, the child read %q, want 349; it said:\n%s", got, out.String(), s.said())
	}
}

// A dead process is not a dead job: while anything of the tree lives, the session's lock is not
// free, even when interlock and the guard were killed together and a daemon got away.
func TestSessionDescriptor(t *testing.T) {
	session := filepath.Join(t.TempDir(), "session")
	if err := os.WriteFile(session, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := launch(t, "-inherit", session, "--", "sh", "-c", "setsid sleep 1000 & exec sleep 1000")
	guardtest.Eventually(t, "two processes", func() bool { return len(marked(s.mark)) == 2 })
	for _, pid := range marked(s.mark) {
		if at := descriptor(pid, session); at < 50 {
			t.Errorf("the command has the session's descriptor at %d, want 50 or more", at)
		}
	}
	supervisor, guard, child := s.Process.Pid, s.guard(t), s.child(t)
	// Stopped first, so that neither sees the other die.
	_ = syscall.Kill(supervisor, syscall.SIGSTOP)
	guardtest.Eventually(t, "interlock is stopped", func() bool { return stopped(supervisor) })
	_ = syscall.Kill(guard, syscall.SIGKILL)
	_ = syscall.Kill(supervisor, syscall.SIGKILL)
	s.exit(t)
	guardtest.Eventually(t, "the child is dead", func() bool { return !environment(child, "MARK="+s.mark) })

	file, err := os.Open(session)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	free := func() bool { return unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil }
	if left := marked(s.mark); len(left) == 0 {
		t.Fatal("the daemon is dead, so nothing is shown")
	} else if free() {
		t.Error("the lock is free although the daemon lives")
	} else {
		_ = syscall.Kill(left[0], syscall.SIGKILL)
		guardtest.Eventually(t, "the lock is free", free)
	}
}

// descriptor returns the number at which pid has path open, or -1.
func descriptor(pid int, path string) int {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); to == path {
			fd, _ := strconv.Atoi(e.Name())
			return fd
		}
	}
	return -1
}

// A pipeline ends when the child has closed its end: nobody else keeps it.
func TestPipelineEnds(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	s := prepare(t, "-ownstdio", "--", "sh", "-c", "echo done; exec >/dev/null 2>&1; exec sleep 1000")
	s.Stdout = write
	s.start(t)
	_ = write.Close()
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(read)
		text <- string(all)
	}()
	var got string
	guardtest.Eventually(t, "the end of the pipe", func() bool {
		select {
		case got = <-text:
			return true
		default:
			return false
		}
	})
	if got != "done\n" {
		t.Errorf("read %q", got)
	}
	guardtest.Eventually(t, "the child goes on", func() bool { return len(marked(s.mark)) == 1 }) // unseen while it executes sleep
}

// The guard holds none of the user's descriptors once the child has them.
func TestGuardHoldsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := prepare(t, "--", "sleep", "1000")
	s.Stdin, s.Stdout, s.ExtraFiles = f, f, []*os.File{f}
	s.start(t)
	s.says(t, "runs")
	if at := descriptor(s.child(t), path); at != 0 {
		t.Errorf("the child has the file at %d, want 0", at)
	}
	guardtest.Eventually(t, "the guard has closed it", func() bool { return descriptor(s.guard(t), path) == -1 })
}
