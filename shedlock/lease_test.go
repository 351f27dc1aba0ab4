package shedlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/storetest"
)

// A MinHold keeps ShedLock out as lockAtLeastFor would, also when it is released twice, and while the client is closed.
func TestMinHoldIsLockAtLeastFor(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		client, err := interlock.Open(t.Context(), s.url(s.Addr()), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		lease, err := client.Mutex("job", interlock.Wait(0), interlock.MinHold(2*time.Second)).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second one shortens nothing
			if err := lease.Release(); err != nil {
				t.Fatal(err)
			}
		}
		s.must(t, "create table kept as select locked_at from shedlock")
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		storetest.Until(t, "ShedLock gets it", func() bool { return (java{t, s, "host-1"}).updates("job", time.Minute) })
		least := map[bool]string{true: "interval '2 seconds'", false: "interval 2 second"}[s.postgres]
		if s.count(t, "locked_at >= (select locked_at from kept) + "+least) != 1 {
			t.Error("ShedLock got in before the least time was over")
		}
	})
}

// An election is seen by others, with its leader.
func TestElection(t *testing.T) {
	both(t, func(t *testing.T, on opening) {
		s := on(t)
		var all [2]*interlock.Client
		for i, name := range []string{"one", "two"} {
			client, err := interlock.Open(t.Context(), s.url(s.Addr()), &interlock.Options{Owner: name})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			all[i] = client
		}
		if err := all[0].Election("leader").Lead(t.Context(), func(ctx context.Context) error {
			l, err := all[1].Election("leader").Leader(ctx)
			if l.Owner.Name != "one" {
				t.Errorf("the leader is %+v", l)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
}
