package servertest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// arrives waits until the only key has come to a replica.
func arrives(t *testing.T, replica *servertest.Server) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); said(t, replica, "DBSIZE") != "1"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the replica at %s does not get the key", replica)
		}
	}
}

func TestSentinelFailsOverAndBack(t *testing.T) {
	t.Parallel()
	s := servertest.Sentinel(t)
	if want := "redis+sentinel://" + s.Nodes[0].Addr() + "," + s.Nodes[1].Addr() + "," + s.Nodes[2].Addr() + "/mymaster"; s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said(t, s.Master, "SET", "kept", "yes")
	arrives(t, s.Replica)
	for i := range 2 {
		master, replica := s.Master, s.Replica
		if err := s.Failover(ctx); err != nil {
			t.Fatalf("failover %d: %v", i+1, err)
		}
		if s.Master != replica || s.Replica != master {
			t.Fatalf("failover %d: the fields are not exchanged", i+1)
		}
		for _, node := range s.Nodes {
			if got := said(t, node, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"); strings.ReplaceAll(got, "\n", ":") != s.Master.Addr() {
				t.Errorf("failover %d: a Sentinel says %s, the master is at %s", i+1, got, s.Master.Addr())
			}
		}
		if got := said(t, s.Master, "GET", "kept"); got != "yes" {
			t.Errorf("failover %d: the key is %q", i+1, got)
		}
		said(t, s.Master, "SET", "written", "after")
		if err := s.Rejoin(ctx); err != nil {
			t.Fatalf("rejoin %d: %v", i+1, err)
		}
		if got := said(t, s.Replica, "GET", "written"); got != "after" {
			t.Errorf("rejoin %d: the replica has %q", i+1, got)
		}
	}
}
