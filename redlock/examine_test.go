package redlock_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// doctored opens a client of masters.
func doctored(t *testing.T, set ...*servertest.Server) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), urlOf(addrs(set)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Masters that are well give no finding; what is wrong with one is told with its name, and what is
// wrong with the set by itself.
func TestDoctor(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3, redistest.Durable...)
	other := servertest.Redis(t, redistest.Durable...)
	c := doctored(t, set...)
	examinetest.Finds(t, "masters that are well", c, examinetest.Levels{}, interlock.Writing())
	for _, k := range []struct {
		setting, wrong, right string
		want                  examinetest.Levels
	}{
		{"maxmemory-policy", "allkeys-lru", "noeviction", examinetest.Levels{"eviction": examinetest.Warn}},
		{"appendfsync", "everysec", "always", examinetest.Levels{"persistence": examinetest.Warn}},
		{"timeout", "3", "0", examinetest.Levels{"idle connections": examinetest.Warn}},
		{"min-replicas-to-write", "1", "0", examinetest.Levels{"min-replicas": examinetest.Bad}},
	} {
		set[1].MustDo(t, "CONFIG", "SET", k.setting, k.wrong)
		r := examinetest.Finds(t, k.setting, c, k.want)
		for _, f := range r.Findings {
			if _, named := k.want[f.Title]; named && !strings.Contains(f.Server, "master 2 ("+set[1].Addr()) {
				t.Errorf("%+v, want it of master 2", f)
			}
		}
		set[1].MustDo(t, "CONFIG", "SET", k.setting, k.right)
	}
	other.MustDo(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(set[0].Port()))
	until(t, 30*time.Second, "the replica is there", func() bool {
		return strings.Contains(set[0].MustDo(t, "INFO", "replication"), "state=online")
	})
	examinetest.Finds(t, "a master with a replica", c, examinetest.Levels{"failover": examinetest.Warn})
	other.MustDo(t, "REPLICAOF", "NO", "ONE")
	until(t, 30*time.Second, "it has gone", func() bool {
		return strings.Contains(set[0].MustDo(t, "INFO", "replication"), "connected_slaves:0")
	})
	if err := set[2].Kill(); err != nil {
		t.Fatal(err)
	}
	examinetest.Finds(t, "one master that is away", c, examinetest.Levels{"votes": examinetest.Warn})
	if err := set[1].Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Doctor(t.Context()); !errors.Is(err, interlock.ErrUnavailable) {
		t.Errorf("a majority is away: %v, want %v", err, interlock.ErrUnavailable)
	}
}

// One master is no quorum, and those that have just forgotten all have no vote.
func TestDoctor_TheSet(t *testing.T) {
	t.Parallel()
	examinetest.Finds(t, "one master", doctored(t, startMasters(t, 1, redistest.Durable...)...), examinetest.Levels{"masters": examinetest.Warn})

	set := startMasters(t, 3)
	c := doctored(t, set...)
	examinetest.Finds(t, "masters that forget", c, examinetest.Levels{"persistence": examinetest.Warn})
	held, err := c.Mutex("m").Lock(t.Context()) // so that the set is in use
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release() }() // which nobody can answer for
	for _, s := range set[:2] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := examinetest.Levels{"persistence": examinetest.Warn, "votes": examinetest.Bad}
	until(t, 30*time.Second, "no majority has a vote", func() bool { // as soon as the driver has looked
		r, err := c.Doctor(t.Context())
		got := examinetest.Levels{}
		if err == nil {
			for _, f := range slices.Concat(r.Of(examinetest.Warn), r.Of(examinetest.Bad)) {
				got[f.Title] = f.Level
			}
		}
		return maps.Equal(got, want)
	})
}
