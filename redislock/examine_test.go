package redislock_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// Each setting that hurts has its own finding, and no other; without them the same server is well,
// before, between and after.
func TestDoctor_Settings(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, append(slices.Clone(redistest.Durable), "--enable-debug-command", "yes")...)
	c := open(t, s.URL(), nil)
	examinetest.Finds(t, "a server that is well", c, examinetest.Levels{})
	number := func(field string) int64 {
		_, after, _ := strings.Cut(s.MustDo(t, "INFO"), field+":")
		n, _, _ := strings.Cut(after, "\r")
		i, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	set := func(words ...string) [][]string {
		var all [][]string
		for i := 0; i < len(words); i += 2 {
			all = append(all, []string{"CONFIG", "SET", words[i], words[i+1]})
		}
		return all
	}
	s.MustDo(t, "SETRANGE", "ballast", strconv.Itoa(32<<20), "x")
	limit := func(percent int64) string { return strconv.FormatInt(number("used_memory")*100/percent, 10) }
	for _, k := range []struct {
		what     string
		do, undo [][]string
		want     examinetest.Levels
	}{
		{"evicts", set("maxmemory", "1gb", "maxmemory-policy", "volatile-lru"), set("maxmemory-policy", "noeviction", "maxmemory", "0"), examinetest.Levels{"eviction": examinetest.Bad}},
		{"evicts all", set("maxmemory", "1gb", "maxmemory-policy", "allkeys-random"), set("maxmemory-policy", "noeviction", "maxmemory", "0"), examinetest.Levels{"eviction": examinetest.Bad}},
		{"would evict", set("maxmemory-policy", "volatile-ttl"), set("maxmemory-policy", "noeviction"), examinetest.Levels{"eviction": examinetest.Warn}},
		{"is nearly full", set("maxmemory", limit(95)), set("maxmemory", "0"), examinetest.Levels{"memory": examinetest.Warn}},
		{"is full", set("maxmemory", limit(110)), set("maxmemory", "0"), examinetest.Levels{"memory": examinetest.Bad}},
		{"syncs now and then", set("appendfsync", "everysec"), set("appendfsync", "always"), examinetest.Levels{"persistence": examinetest.Warn}},
		{"syncs never", set("appendfsync", "no"), set("appendfsync", "always"), examinetest.Levels{"persistence": examinetest.Warn}},
		{"has little memory for connections", set("maxmemory-clients", "8mb"), set("maxmemory-clients", "0"), examinetest.Levels{"client memory": examinetest.Warn}},
		{"has a part of little memory for them", set("maxmemory", "1gb", "maxmemory-clients", "5%"), set("maxmemory-clients", "0", "maxmemory", "0"), examinetest.Levels{"client memory": examinetest.Warn}},
		{"has memory for connections", set("maxmemory", "4gb", "maxmemory-clients", "5%"), set("maxmemory-clients", "0", "maxmemory", "0"), examinetest.Levels{}},
		{"pauses", set("no-appendfsync-on-rewrite", "yes"), set("no-appendfsync-on-rewrite", "no"), examinetest.Levels{"persistence": examinetest.Warn}},
		{"waits for replicas", set("min-replicas-to-write", "1"), set("min-replicas-to-write", "0"), examinetest.Levels{"min-replicas": examinetest.Bad}},
		{"cuts off listeners", set("client-output-buffer-limit", "pubsub 65536 0 0"), set("client-output-buffer-limit", "pubsub 33554432 8388608 60"), examinetest.Levels{"listeners": examinetest.Warn}},
		{"cuts off listeners after a while", set("client-output-buffer-limit", "pubsub 0 65536 1"), set("client-output-buffer-limit", "pubsub 0 0 0"), examinetest.Levels{"listeners": examinetest.Warn}},
		{"closes idle connections", set("timeout", "5"), set("timeout", "0"), examinetest.Levels{"idle connections": examinetest.Warn}},
		{"never says busy", set("lua-time-limit", "0"), set("lua-time-limit", "5000"), examinetest.Levels{"script limit": examinetest.Warn}},
		{"says busy late", set("lua-time-limit", "60000"), set("lua-time-limit", "5000"), examinetest.Levels{"script limit": examinetest.Warn}},
		{"was slow", [][]string{{"DEBUG", "SLEEP", "1.6"}}, [][]string{{"SLOWLOG", "RESET"}}, examinetest.Levels{"slow commands": examinetest.Warn}},
		{"notes nothing slow", set("slowlog-log-slower-than", "-1"), set("slowlog-log-slower-than", "10000"), examinetest.Levels{"slow commands": examinetest.Skip}},
		{"notes what is slower", set("slowlog-log-slower-than", "60000000"), set("slowlog-log-slower-than", "10000"), examinetest.Levels{"slow commands": examinetest.Skip}},
		{"keeps no notes", set("slowlog-max-len", "0"), set("slowlog-max-len", "128"), examinetest.Levels{"slow commands": examinetest.Skip}},
		{"has data", [][]string{{"SET", "a", "text"}, {"SET", "il:{a}:fence:a", "64"}}, [][]string{{"DEL", "a", "il:{a}:fence:a"}}, examinetest.Levels{"names": examinetest.Bad}},
		{
			"is damaged",
			[][]string{{"HSET", "il:{a}:claims:a", "id", "x"}, {"RPUSH", "il:{a}:line:a", "id"}, {"SET", "il:{a}:fence:a", "64"}},
			[][]string{{"DEL", "il:{a}:claims:a", "il:{a}:line:a", "il:{a}:fence:a"}},
			examinetest.Levels{"names": examinetest.Bad, "ends": examinetest.Skip, "leftovers": examinetest.Skip},
		},
		{
			"has leftovers",
			[][]string{{"EVAL", "for i = 1, 10000 do redis.call('SET', 'il:{n' .. i .. '}:fence:n' .. i, 64) end", "0"}},
			[][]string{{"EVAL", "for i = 1, 10000 do redis.call('DEL', 'il:{n' .. i .. '}:fence:n' .. i) end", "0"}},
			examinetest.Levels{"leftovers": examinetest.Warn},
		},
		{"keeps no log", set("appendonly", "no"), nil, examinetest.Levels{"persistence": examinetest.Warn}},
	} {
		for _, words := range k.do {
			s.MustDo(t, words...)
		}
		r := examinetest.Finds(t, "a server that "+k.what, c, k.want)
		if warned := r.Of(driver.LevelWarn); k.what == "syncs never" && (len(warned) != 1 || !strings.Contains(warned[0].Why, "30 s or more")) {
			t.Errorf("%+v, want that more than a second is lost", warned)
		}
		for _, words := range k.undo {
			s.MustDo(t, words...)
		}
		if k.undo != nil {
			examinetest.Finds(t, "no more a server that "+k.what, c, examinetest.Levels{})
		}
	}
	others := number("connected_clients") - 1 // but for the one that asks
	s.MustDo(t, "CONFIG", "SET", "maxclients", strconv.FormatInt(others, 10))
	examinetest.Finds(t, "a server that has no room", c, examinetest.Levels{"persistence": examinetest.Warn, "clients": examinetest.Warn})
}

// A disk that takes no files stops all writes, or will.
func TestDoctor_Disk(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, redistest.Durable...)
	c := open(t, s.URL(), nil)
	s.MustDo(t, "CONFIG", "SET", "save", "3600 100000")
	if err := os.RemoveAll(s.Dir()); err != nil {
		t.Fatal(err)
	}
	s.MustDo(t, "BGSAVE")
	eventually(t, "the save has failed", func() bool {
		return strings.Contains(s.MustDo(t, "INFO", "persistence"), "rdb_last_bgsave_status:err")
	})
	examinetest.Finds(t, "writes are stopped", c, examinetest.Levels{"disk": examinetest.Bad})
	s.MustDo(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	examinetest.Finds(t, "they are not stopped", c, examinetest.Levels{"disk": examinetest.Warn})
}

// A master with a replica can lose locks by a failover; one that has become a replica takes none.
func TestDoctor_Replicas(t *testing.T) {
	t.Parallel()
	s, other := servertest.Redis(t, redistest.Durable...), servertest.Redis(t, redistest.Durable...)
	c := open(t, s.URL(), nil)
	other.MustDo(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(s.Port()))
	eventually(t, "the replica is there", func() bool {
		return strings.Contains(s.MustDo(t, "INFO", "replication"), "state=online")
	})
	examinetest.Finds(t, "a master with a replica", c, examinetest.Levels{"failover": examinetest.Warn})
	s.MustDo(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	examinetest.Finds(t, "a master that waits for it", c, examinetest.Levels{"failover": examinetest.Warn, "min-replicas": examinetest.Warn})
	s.MustDo(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	other.MustDo(t, "REPLICAOF", "NO", "ONE")
	s.MustDo(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(other.Port()))
	examinetest.Finds(t, "a replica", c, examinetest.Levels{"role": examinetest.Bad, "names": examinetest.Skip})
}

// Sentinels are looked at, too: how many there are, whether they are enough for a failover, and how
// soon there would be one.
func TestDoctor_Sentinels(t *testing.T) {
	t.Parallel()
	s := servertest.Sentinel(t, redistest.Durable...)
	master := path.Base(s.URL())
	c := open(t, s.URL(), nil)
	with := func(title string) examinetest.Levels { // and that a failover can lose locks, which is so by any number of them
		return examinetest.Levels{"failover": examinetest.Warn, title: examinetest.Warn}
	}
	examinetest.Finds(t, "three Sentinels", c, examinetest.Levels{"failover": examinetest.Warn})
	s.Nodes[0].MustDo(t, "SENTINEL", "SET", master, "quorum", "4")
	examinetest.Finds(t, "a quorum of four", c, with("sentinels"))
	s.Nodes[0].MustDo(t, "SENTINEL", "SET", master, "quorum", "2")
	s.Nodes[1].MustDo(t, "SENTINEL", "SET", master, "down-after-milliseconds", "60000")
	examinetest.Finds(t, "a minute until the failover", c, with("failover time"))
	s.Nodes[1].MustDo(t, "SENTINEL", "SET", master, "down-after-milliseconds", "15000")
	if err := s.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	examinetest.Finds(t, "a Sentinel is gone", c, with("sentinels"))
}

// A user who may not do what a lock needs is told so where the server tells, and else what was not
// looked at.
func TestDoctor_Rights(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, redistest.Durable...)
	for _, k := range []struct {
		rights string
		want   examinetest.Levels
	}{
		{"~* &* +@all", examinetest.Levels{}},
		{"~* &* +@all -publish", examinetest.Levels{"rights": examinetest.Bad}},
		{"~* &other:* +@all", examinetest.Levels{"rights": examinetest.Bad}},
		{"~* &* +@all -acl", examinetest.Levels{"rights": examinetest.Skip}},
		{"~* &* +@all -slowlog", examinetest.Levels{"slow commands": examinetest.Skip}},
		{"~* &* +@all -config", examinetest.Levels{
			"persistence": examinetest.Skip, "min-replicas": examinetest.Skip, "listeners": examinetest.Skip, "client memory": examinetest.Skip, "idle connections": examinetest.Skip, "script limit": examinetest.Skip,
		}},
		{redislock.ACL(redislock.Options{}, "*"), examinetest.Levels{
			"persistence": examinetest.Skip, "min-replicas": examinetest.Skip, "listeners": examinetest.Skip, "client memory": examinetest.Skip, "idle connections": examinetest.Skip, "script limit": examinetest.Skip, "rights": examinetest.Skip, "slow commands": examinetest.Skip,
		}},
		{redislock.ACL(redislock.Options{}, "orders/*"), examinetest.Levels{
			"latency":     examinetest.Skip,
			"persistence": examinetest.Skip, "min-replicas": examinetest.Skip, "listeners": examinetest.Skip, "client memory": examinetest.Skip, "idle connections": examinetest.Skip, "script limit": examinetest.Skip, "rights": examinetest.Skip, "slow commands": examinetest.Skip,
		}},
	} {
		name := driver.NewID()
		s.MustDo(t, append([]string{"ACL", "SETUSER", name, "on", ">secret"}, strings.Fields(k.rights)...)...)
		u := url.URL{Scheme: "redis", User: url.UserPassword(name, "secret"), Host: s.Addr()}
		examinetest.Finds(t, "a user with "+k.rights, open(t, u.String(), nil), k.want)
	}
}

// A clock that is wrong is noticed, and so is a claim that stays for hours.
func TestDoctor_Clock(t *testing.T) {
	t.Parallel()
	s, err := servertest.Start(t.Context(), servertest.Options{Clock: true, Args: redistest.Durable})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := open(t, s.URL(), nil)
	for _, by := range []time.Duration{time.Minute, -time.Hour} {
		step(t, s, by)
		examinetest.Finds(t, fmt.Sprintf("a clock that was stepped by %v", by), c, examinetest.Levels{"clock": examinetest.Warn})
		step(t, s, -by)
	}
	release(t, hold(t, c.Mutex("short")))
	l := hold(t, c.Mutex("long", interlock.TTL(3*time.Hour)))
	examinetest.Finds(t, "a claim that stays", c, examinetest.Levels{"ends": examinetest.Warn})
	release(t, l)
	examinetest.Finds(t, "it has gone", c, examinetest.Levels{})
}

// A claim without an end, as PERSIST makes one, is in the way for ever once its holder is dead.
func TestDoctor_WithoutAnEnd(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, redistest.Durable...)
	c := open(t, s.URL(), nil)
	l := hold(t, c.Mutex("jobs", interlock.TTL(10*time.Minute))) // which is not renewed so soon
	s.MustDo(t, "PERSIST", "jobs")
	examinetest.Finds(t, "a claim without an end", c, examinetest.Levels{"ends": examinetest.Warn})
	release(t, l)
	examinetest.Finds(t, "it has gone", c, examinetest.Levels{})
}

// A Cluster is looked at as a whole: each master, and whether all slots have one.
func TestDoctor_Cluster(t *testing.T) {
	t.Parallel()
	cluster := servertest.RedisCluster(t, 3, 0, redistest.Durable...)
	c := open(t, cluster.URL(), nil)
	examinetest.Finds(t, "a cluster that is well", c, examinetest.Levels{})
	cluster.Nodes[1].MustDo(t, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	r, err := c.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wrong := r.Of(examinetest.Warn)
	if len(wrong) != 1 || wrong[0].Title != "eviction" || !strings.Contains(wrong[0].Server, strconv.Itoa(cluster.Nodes[1].Port())) {
		t.Errorf("%+v, want that of one master, and its port", wrong)
	}
	cluster.Nodes[1].MustDo(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	for _, n := range cluster.Nodes {
		n.MustDo(t, "CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	for _, n := range cluster.Nodes {
		n.MustDo(t, "CLUSTER", "DELSLOTS", strconv.Itoa(cornerSlot))
	}
	examinetest.Finds(t, "a slot without a master", c, examinetest.Levels{"slots": examinetest.Bad})
}

// A master of a Cluster that has died is a finding, and so is what that means for its slots.
func TestDoctor_AMasterHasDied(t *testing.T) {
	t.Parallel()
	cluster := servertest.RedisCluster(t, 3, 0, redistest.Durable...)
	c := open(t, cluster.URL(), nil)
	examinetest.Finds(t, "a cluster that is well", c, examinetest.Levels{})
	if err := cluster.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	for _, n := range cluster.Nodes[:2] {
		eventually(t, "the others know", func() bool {
			return strings.Contains(n.MustDo(t, "CLUSTER", "INFO"), "cluster_state:fail")
		})
	}
	want := examinetest.Levels{"answers": examinetest.Bad, "slots": examinetest.Bad, "names": examinetest.Skip}
	examinetest.Finds(t, "a cluster without a master", c, want)
}

// A server that answers late costs leases.
func TestDoctor_Latency(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, append(slices.Clone(redistest.Durable), "--lua-time-limit", "1000")...)
	c := open(t, s.URL(), ttl(3*time.Second))
	s.MustDo(t, "CLIENT", "PAUSE", "2500")
	examinetest.Finds(t, "a server that answers late", c, examinetest.Levels{"latency": examinetest.Bad})
}

// cornerSlot is one that no name of these tests is in.
const cornerSlot = 16000

// With leave to write a whole lock is tried, and what a user lacks shows where the server tells
// nothing.
func TestDoctor_Writing(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, redistest.Durable...)
	s.MustDo(t, append([]string{"ACL", "SETUSER", "u", "on", ">secret"}, strings.Fields(redislock.ACL(redislock.Options{}, "*")+" -set")...)...)
	rehearsed := func(store string, want driver.Level) {
		t.Helper()
		r, err := open(t, store, nil).Doctor(context.Background(), interlock.Writing())
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[len(r.Findings)-1]; f.Title != "rehearsal" || f.Level != want {
			t.Errorf("%s: %+v, want a rehearsal that is %v", driver.Redact(store), f, want)
		}
	}
	rehearsed(s.URL(), driver.LevelOK)
	// Its counter stays for a while, and the record of a line in which nobody stands, if a line was
	// made.
	for _, key := range strings.Fields(s.MustDo(t, "KEYS", "*interlock-doctor*")) {
		if ms := s.MustDo(t, "PTTL", key); strings.HasPrefix(ms, "-1") {
			t.Errorf("%s stays for ever", key)
		}
	}
	rehearsed("redis://u:secret@"+s.Addr(), examinetest.Bad)
}
