//go:build linux

package command_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// With one more import, go build makes a command that knows a new scheme: it runs commands under
// locks there, with a guard, and shows who holds.
func TestCommandKnowsTheStoresOfItsProgram(t *testing.T) {
	dir := t.TempDir()
	own, store := filepath.Join(dir, "own"), "own:"+filepath.Join(dir, "store")
	if out, err := exec.Command("go", "build", "-o", own, "./testdata/own").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	command := func(args ...string) (out string, status int) {
		t.Helper()
		cmd := exec.Command(own, args...)
		cmd.Env = append(os.Environ(), "INTERLOCK_STORE="+store, "OWN="+own)
		b, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(b), cmd.ProcessState.ExitCode()
	}
	type step struct {
		args []string
		says string
		want int
	}
	for _, c := range []step{
		{[]string{"run", "report", "--", "sh", "-c", `echo "token $INTERLOCK_FENCE"; "$OWN" ls; exit 3`}, "report", 3},
		{[]string{"run", "report", "--", "sh", "-c", `INTERLOCK_HELD= "$OWN" run --try report -- true`}, "held by", 75},
		{[]string{"ls"}, "", 0},
		{[]string{"--store", "file:" + filepath.Join(dir, "other"), "run", "report", "--", "echo", "done"}, "done", 0},
		{[]string{"--store", "redis://127.0.0.1", "ls"}, `import _ "github.com/interlock-go/interlock/redislock"`, 64},
	} {
		if out, status := command(c.args...); status != c.want || !strings.Contains(out, c.says) {
			t.Errorf("%s: status %d, want %d with %q in:\n%s", strings.Join(c.args, " "), status, c.want, c.says, out)
		}
	}
}

// A program of some lines tries what the locks of a store are worth, where no
// interlock-lab knows it.
func TestStoreOfOnesOwnIsTortured(t *testing.T) {
	if testing.Short() {
		t.Skip("whether faults bite is a matter of time")
	}
	dir := t.TempDir()
	tortured := filepath.Join(dir, "tortured")
	if out, err := exec.Command("go", "build", "-o", tortured, "./testdata/tortured").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if out, err := exec.Command(tortured, "own:"+filepath.Join(dir, "store")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
