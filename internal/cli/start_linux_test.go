package cli_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A guard is this program again, and must not begin as slowly: it does not initialize the clients
// of the stores, which takes longer than all else that it does. That is so for whatever is
// initialized after package guard, by the order of the language. A run in the embedded store needs
// none of those clients, either, and does not wait for what comes after package early.
func TestRunStartsBeforeTheStores(t *testing.T) {
	t.Parallel()
	c := exec.Command("interlock", "run", "--store", "file:"+filepath.Join(t.TempDir(), "store"), "job", "--", "true")
	c.Env = append(c.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trace.String())
	}
	// The guard begins while interlock is initialized, and the lines of the two may be mixed up: so
	// only too many are counted.
	for late, most := range map[string]int{"net": 1, "google.golang.org/grpc": 0, "go.etcd.io/etcd/api/v3/etcdserverpb": 0, "net/http": 0} {
		if n := strings.Count(trace.String(), "init "+late+" @"); n > most {
			t.Errorf("%s is initialized %d times, want %d at most", late, n, most)
		}
	}
	if !strings.Contains(trace.String(), "init runtime @") {
		t.Error("nothing was traced")
	}
	if t.Failed() {
		t.Log(trace.String())
	}
}

// With a GOGC of its user's, interlock may be collecting when it is about to fork the guard: what
// goes on then is over first, by a collection of its own. One that waited for the thread that forks
// would keep Ctrl-Z from being heard.
func TestRunForksBehindACollection(t *testing.T) {
	t.Parallel()
	c := exec.Command("interlock", "run", "--store", "file:"+filepath.Join(t.TempDir(), "store"), "job", "--", "true")
	c.Env = append(c.Environ(), "GOGC=1", "GODEBUG=gctrace=1")
	trace, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	if !strings.Contains(string(trace), "(forced)") {
		t.Errorf("the guard was forked while a collection could go on:\n%s", trace)
	}
}
