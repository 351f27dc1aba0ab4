//go:build linux

package cli_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Who runs a job by hand on memcached is told first of all what that is worth.
func TestTerminal_MemcachedIsForEfficiency(t *testing.T) {
	t.Parallel()
	env := []string{"INTERLOCK_STORE=" + servertest.Memcached(t).URL()}
	p := person{guardtest.Open(t, env, "interlock", "run", "job", "--", "true"), env}
	p.Shows(t, "interlock: warning: memcached is for efficiency only")
	if got := p.Ends(t); got != 0 {
		t.Errorf("exit status %d; the screen shows %q", got, p.Shown())
	}
}
