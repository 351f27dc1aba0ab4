package cli_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A guard is this program again, and must not begin as slowly: it does not initialize the clients of the stores, which takes longer than
// all else that it does. That is so for whatever is initialized after package guard, by the order of the language.
func TestGuardStartsBeforeTheStores(t *testing.T) {
	t.Parallel()
	c := exec.Command("interlock", "run", "--store", "file:"+filepath.Join(t.TempDir(), "store"), "job", "--", "true")
	c.Env = append(c.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trace.String())
	}
	times := map[string]int{} // by package: once in interlock, once in its guard
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @`).FindAllStringSubmatch(trace.String(), -1) {
		times[m[1]]++
	}
	if times["runtime"] != 2 {
		t.Fatalf("the runtime began %d times, want 2: interlock and its guard\n%s", times["runtime"], trace.String())
	}
	for _, late := range []string{"net", "crypto/tls", "google.golang.org/grpc", "go.etcd.io/etcd/api/v3/etcdserverpb", "github.com/jackc/pgx/v5/pgtype"} {
		if times[late] != 1 {
			t.Errorf("%s is initialized %d times, want once: in interlock, and not in its guard", late, times[late])
		}
	}
	if t.Failed() {
		t.Log(trace.String())
	}
}
