package servertest_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

func TestServersDieWithTheirStarter(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SERVERTEST_DIE="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var pids []int
	for text := range strings.FieldsSeq(line) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("it says %q", line)
		}
		if !alive(pid) {
			t.Errorf("server %d does not run while its starter does", pid)
		}
		pids = append(pids, pid)
	}
	if err := errors.Join(err, cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(pids) != 2 {
		t.Fatalf("it says %q", line)
	}
	for _, pid := range pids {
		for end := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("server %d outlives the process that started it", pid)
			}
		}
	}
}

// alive reports whether the process runs; one that has ended and waits for a parent to ask does
// not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// A server that is killed while a copy of it writes a file takes the copy along.
func TestKillTakesTheCopyAlong(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, "--rdb-key-save-delay", "60000000")
	said(t, s, "SET", "a", "x")
	said(t, s, "BGSAVE")
	var pid int
	for end := time.Now().Add(10 * time.Second); pid == 0; time.Sleep(time.Millisecond) {
		_, rest, _ := strings.Cut(s.Log(), "Background saving started by pid ")
		if text, _, ok := strings.Cut(rest, "\n"); ok {
			var err error
			if pid, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		} else if time.Now().After(end) {
			t.Fatalf("no copy is started:\n%s", s.Log())
		}
	}
	if !alive(pid) {
		t.Fatal("the copy is done already")
	}
	start := time.Now()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	// A copy that goes on is given ten seconds to close the log; its first look for its parent
	// comes after a minute.
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Kill took %v: the copy outlives the server", took)
	}
}
