package cli_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// A job whose name is somebody's data already ends with 65, which no second try mends, and not as
// if the store were down.
func TestSomebodysData(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	server.MustDo(t, "RPUSH", "job", "somebody's work")
	redisson := strings.Replace(server.URL(), "redis://", "redisson://", 1)
	redlock := strings.Replace(server.URL(), "redis://", "redlock://", 1)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"run", "--store", server.URL(), "job", "--", "true"}, 65, "data of another type"},
		{[]string{"run", "--store", server.URL(), "--try", "--exit-data", "3", "job", "--", "true"}, 3, "data of another type"},
		{[]string{"run", "--store", redisson, "job", "--", "true"}, 65, "a list stands there, not a hash of Redisson"},
		{[]string{"run", "--store", redlock, "--try", "job", "--", "true"}, 65, ""},
		{[]string{"run", "--store", server.URL(), "other", "--", "true"}, 0, ""},
		{[]string{"ls", "--store", "file:" + filepath.Dir(t.TempDir())}, 65, "so it is not a store"},
	} {
		endsWith(t, c.args, c.status, c.says)
	}
	if left := server.MustDo(t, "LRANGE", "job", "0", "-1"); !strings.Contains(left, "somebody's work") {
		t.Errorf("of somebody's data is left %q", left)
	}
}

// endsWith runs interlock, which has to end with a status and to say a text.
func endsWith(t *testing.T, args []string, status int, says string) {
	t.Helper()
	out, err := exec.Command("interlock", args...).CombinedOutput()
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != status || !strings.Contains(string(out), says) {
		t.Errorf("%q: status %d, says %q; want %d and %q", args, got, out, status, says)
	}
}
