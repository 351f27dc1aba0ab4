package guard_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The exit status is the child's own, 128+n for a signal, and 126 or 127 as in a shell (C6).
func TestExitStatus(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"success", []string{"true"}, 0},
		{"code", []string{"sh", "-c", "exit 7"}, 7},
		{"highest code", []string{"sh", "-c", "exit 255"}, 255},
		{"terminated", []string{"sh", "-c", "kill -TERM $$"}, 143},
		{"killed", []string{"sh", "-c", "kill -KILL $$"}, 137},
		{"interrupted", []string{"sh", "-c", "kill -INT $$"}, 130},
		{"no such program", []string{"no-such-program"}, 127},
		{"no such file", []string{"/no/such/file"}, 127},
		{"not executable", []string{write("plain", "x", 0o644)}, 126},
		{"a directory", []string{dir}, 126},
		{"no interpreter", []string{write("lost", "#!/no/such/interpreter\n", 0o755)}, 127},
		{"a script without its interpreter", []string{write("text", "exit $1\n", 0o755), "9"}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := prepare(t, append([]string{"--"}, c.args...)...)
			s.start(t)
			if got := s.exit(t); got != c.want {
				t.Errorf("exit status %d, want %d; it said:\n%s", got, c.want, s.said())
			}
		})
	}
}

// The kernel's death signal follows the thread that forked, not the process: it must not end before
// the child (C3).
func TestThreadOutlivesChild(t *testing.T) {
	s := launch(t, "--", "sh", "-c", "sleep 0.3; exit 7")
	if got := s.exit(t); got != 7 {
		t.Errorf("exit status %d, want the child's 7", got)
	}
}

func TestStandardInput(t *testing.T) {
	s := prepare(t, "-ownstdio", "--", "cat")
	s.Stdin = strings.NewReader("through the pipe")
	var out bytes.Buffer
	s.Stdout = &out
	s.start(t)
	if got := s.exit(t); got != 0 || out.String() != "through the pipe" {
		t.Errorf("exit status %d, output %q", got, out.String())
	}
}

// Arguments and environment are bytes, and there is no shell.
func TestArguments(t *testing.T) {
	s := prepare(t, "--", "printf", "%s|", "a b", "$HOME", "", "\xff\xfe")
	var out bytes.Buffer
	s.Stdout = &out
	s.start(t)
	if s.exit(t); out.String() != "a b|$HOME||\xff\xfe|" {
		t.Errorf("the command got %q", out.String())
	}
}

// A command is not started when its deadline leaves too little time (C9).
func TestTooLate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "started")
	s := prepare(t, "-lease", "5s", "-least", "6s", "--", "touch", file)
	s.start(t)
	if got := s.exit(t); got != exitLate {
		t.Errorf("exit status %d, want %d", got, exitLate)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command was started, with less time than it needs")
	}
}
