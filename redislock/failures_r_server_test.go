package redislock_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock"
)

// warned opens a driver and returns what it logged at that.
func warned(t *testing.T, s *servertest.Server, o redislock.Options) (warnings []string, survives driver.Survival, err error) {
	t.Helper()
	logs := &journal{}
	o.Logger = slog.New(slog.NewTextHandler(logs, nil))
	conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{s.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	d, err := redislock.New(t.Context(), conn, &o)
	for line := range strings.Lines(logs.String()) {
		warnings = append(warnings, line)
	}
	if err != nil {
		return warnings, survives, err
	}
	defer func() { _ = d.Close(context.Background()) }()
	return warnings, d.Traits().Survives, nil
}

// R3, R5: what a server's configuration can lose is said when it is opened, in words that name the
// consequence, and is refused where that is asked for. A server that loses nothing is opened
// without a word.
func TestR03R05_WhatAServerCanLoseIsSaid(t *testing.T) {
	t.Parallel()
	all := driver.Survival{Process: true, Restart: true, Machine: true}
	for what, c := range map[string]struct {
		args     []string
		says     []string
		survives driver.Survival
	}{
		"all is well": {redistest.Durable, nil, all},
		"no log": {
			nil, []string{"appendonly is off: a server that restarts forgets who holds"}, driver.Survival{Process: true},
		},
		"everysec": {
			[]string{"--appendonly", "yes", "--appendfsync", "everysec"},
			[]string{"appendfsync is not always: a machine that crashes forgets the locks of its last second"},
			driver.Survival{Process: true, Restart: true},
		},
		"no sync": {
			[]string{"--appendonly", "yes", "--appendfsync", "no"}, []string{"appendfsync is not always"}, driver.Survival{Process: true, Restart: true},
		},
		"no sync while the log is rewritten": {
			append(slices.Clone(redistest.Durable), "--no-appendfsync-on-rewrite", "yes"),
			[]string{"no-appendfsync-on-rewrite is yes: a machine that crashes while the server rewrites its log forgets"},
			driver.Survival{Process: true, Restart: true},
		},
		"no CONFIG": { // as of a managed Redis
			append(slices.Clone(redistest.Durable), "--rename-command", "CONFIG", ""),
			[]string{"does not tell this user its appendfsync"},
			driver.Survival{Process: true, Restart: true},
		},
		"volatile-lru": {
			append(slices.Clone(redistest.Durable), "--maxmemory-policy", "volatile-lru"),
			[]string{"maxmemory-policy is volatile-lru: a full server throws locks away while they are held"},
			all,
		},
		"allkeys-lfu without a log": {
			[]string{"--maxmemory-policy", "allkeys-lfu"}, []string{"maxmemory-policy is allkeys-lfu", "appendonly is off"}, driver.Survival{Process: true},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t, c.args...)
			said, survives, err := warned(t, s, redislock.Options{})
			if err != nil || survives != c.survives || len(said) != len(c.says) {
				t.Errorf("survives %+v, %v, said %q: want %+v and %q", survives, err, said, c.survives, c.says)
			}
			for _, text := range c.says {
				if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, text) && strings.Contains(line, "level=WARN") }) {
					t.Errorf("said %q: want %q", said, text)
				}
			}
			_, _, err = warned(t, s, redislock.Options{Strict: true})
			if (err != nil) != (len(c.says) > 0) || err != nil && !errors.Is(err, driver.ErrRefused) {
				t.Errorf("strict: %v, want what is said to be refused", err)
			}
			_, byURL := interlock.Open(t.Context(), s.URL()+"?strict=true", nil)
			for _, text := range c.says {
				if err == nil || !strings.Contains(err.Error(), text) || byURL == nil || !strings.Contains(byURL.Error(), text) {
					t.Errorf("strict: %v, %v: want that it says %q", err, byURL, text)
				}
			}
		})
	}
}

// R15: a replica is no place to lock, nor to ask who does: what it knows is old. It is refused at
// open; a master that becomes a replica later is as good as out of reach, until it is a master
// again.
func TestR15_AReplica(t *testing.T) {
	t.Parallel()
	master := servertest.Redis(t)
	replica := servertest.Redis(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(master.Port()))
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(replica.MustDo(t, "INFO", "replication"), "master_link_status:up")
	})
	_, err := interlock.Open(t.Context(), replica.URL(), &interlock.Options{Patience: time.Millisecond})
	if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "is a replica") || !strings.Contains(err.Error(), strconv.Itoa(master.Port())) {
		t.Errorf("opened a replica: %v, want that it is one, and of whom", err)
	}
	said, _, err := warned(t, master, redislock.Options{})
	if err != nil || !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, "replicas acknowledge late") }) {
		t.Errorf("a master with a replica: said %q, %v", said, err)
	}

	// The replica becomes a master, is used, and goes back.
	replica.MustDo(t, "REPLICAOF", "NO", "ONE")
	client := open(t, replica.URL(), &interlock.Options{TTL: 3 * time.Second, Patience: 3 * time.Second})
	other := open(t, replica.URL(), &interlock.Options{TTL: 3 * time.Second, Patience: ample})
	conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{replica.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d, err := redislock.New(t.Context(), conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	lease := hold(t, client.Mutex("m"))
	waiting := asking(t.Context(), other.Mutex("m"))
	waitsFor(t, replica, "m", 1)
	replica.MustDo(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(master.Port()))
	for what, err := range map[string]error{
		"try":  second(client.Mutex("n").TryLock(t.Context())),
		"lock": second(client.Mutex("n").Lock(t.Context())),
		"read": second(client.RWMutex("n").TryRLock(t.Context())),
		"held": second(other.RWMutex("m").TryRLock(t.Context())), // its line is known, so the long script looks
	} {
		classed(t, what, err, "is a replica", false)
	}
	if _, err := d.Line(t.Context(), "m"); !redisconn.Is(err, "READONLY") {
		t.Errorf("a replica was asked who holds: %v", err)
	}
	told(t, lease)
	replica.MustDo(t, "REPLICAOF", "NO", "ONE")
	grows(t, "a master again", lease.Fence(), get(t, waiting).Lease)
}

// R14: programs with different databases do not exclude each other, and nothing beside a canonical
// key could tell that from programs that mean different locks. What a client can do is to show the
// key.
func TestR14_DatabasesAreApart(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	a, b := open(t, s.URL()+"/0", nil), open(t, s.URL()+"?db=1", nil)
	one, two := hold(t, a.Mutex("m")), hold(t, b.Mutex("m"))
	if one.Err() != nil || two.Err() != nil || a.Key("m") != "m" || b.Key("m") != "m" {
		t.Errorf("%v and %v, keys %q and %q", one.Err(), two.Err(), a.Key("m"), b.Key("m"))
	}
	release(t, one, two)
}
