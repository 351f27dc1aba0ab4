package cli_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// An operator removes the counters of names that nobody locks any more, and no other store takes
// that for something else.
func TestPruneCommand(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	for _, name := range []string{"a/1", "a/2", "b", "c"} {
		server.MustDo(t, "SET", "il:{"+name+"}:fence:"+name, "64")
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"prune", "a/", "--store", server.URL()}, 0, "of 2 names"},
		{[]string{"prune", "b", "--store", server.URL()}, 0, "of 1 name\n"},
		{[]string{"prune", "--json", "--store", server.URL()}, 0, `{"removed":1}`},
		{[]string{"prune", "--idle", "1m", "--store", server.URL()}, 64, "want 1h0m0s or more"},
		{[]string{"prune", "--store", "file://" + t.TempDir()}, 0, "of 0 names"},
		{[]string{"prune", "--store", servertest.Memcached(t).URL()}, 64, "keeps nothing of idle names that could go"},
	} {
		endsWith(t, c.args, c.status, c.says)
	}
}
