package zklock_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// well are servers that tell everything, and wait for the disk.
var well = []string{"-Dzookeeper.forceSync=yes", "4lw.commands.whitelist=*"}

// srvrAlone is what cannot be looked at where a server answers no other word, as it does unless it
// is told to.
var srvrAlone = examinetest.Levels{"ticks": examinetest.Skip, "flushing": examinetest.Skip, "disk": examinetest.Skip, "files": examinetest.Skip, "connections": examinetest.Skip}

// unhurried is a TTL with which a busy machine is no slow store.
var unhurried = &interlock.Options{TTL: 40 * time.Second, Grace: 13 * time.Second}

// finds has the doctor look. A server that stands alone is told of always; here it is not to be
// expected each time.
func finds(t *testing.T, what, url string, o *interlock.Options, want examinetest.Levels, choose ...interlock.DoctorOption) *interlock.Report {
	t.Helper()
	all := examinetest.Levels{"members": examinetest.Warn}
	maps.Copy(all, want)
	if all["members"] == driver.LevelOK {
		delete(all, "members")
	}
	with := "?"
	if strings.Contains(url, with) {
		with = "&"
	}
	c, err := interlock.Open(within(t), url+with+ample, o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer c.Close()
	return examinetest.Finds(t, what, c, all, choose...)
}

// made makes nodes, and takes nothing for an answer.
func made(t *testing.T, hand *zk.Client, nodes ...*zk.Call) {
	t.Helper()
	do(t, hand, zk.Multi(nodes...))
}

// A server that is well gives no finding but that it stands alone, with leave to write neither, and
// nothing stays of it.
func TestDoctor_Well(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t, well...)
	hand := byHand(t, server)
	root := finds(t, "a root of which all is the server's own", server.URL(), unhurried, nil)
	for _, f := range root.Findings {
		if f.Title == "leftovers" && f.Seen != "0 names have a node" {
			t.Errorf("a fresh server: %s, want 0", f.Seen)
		}
	}
	made(t, hand, zk.Create("/locks", nil, zk.Persistent, zk.Anyone))
	url := server.URL() + "/locks"
	finds(t, "a server that is well", url, unhurried, nil)
	if left := children(t, hand, "/locks"); len(left) > 0 {
		t.Errorf("%q stays", left)
	}
	r := finds(t, "with leave to write", url, unhurried, nil, interlock.Writing())
	if f := r.Findings[len(r.Findings)-1]; f.Title != "rehearsal" || f.Level != driver.LevelOK {
		t.Errorf("%+v, want a rehearsal", f)
	}
	finds(t, "with a user", "zk://app:secret@"+server.Addr()+"/locks", unhurried, nil)

	made(t, hand, zk.Create("/kazoo", nil, zk.Persistent, zk.Anyone))
	for i := range 20 {
		made(t, hand, zk.Create(fmt.Sprint("/kazoo/", i), nil, zk.Persistent, zk.Anyone))
	}
	d, err := driver.OpenURL(within(t), server.URL()+"/kazoo?layout=kazoo")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(within(t))
	for many, want := range map[int]examinetest.Levels{20: {"members": examinetest.Warn, "leftovers": examinetest.Warn}, 21: {"members": examinetest.Warn}} {
		zklock.Many(d, many)
		c, err := interlock.New(d, unhurried)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		examinetest.Finds(t, fmt.Sprintf("20 names that nobody locks, where %d are many", many), c, want)
	}

	ballast := filepath.Join(server.Dir(), "version-2", "ballast")
	if err := os.WriteFile(ballast, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(ballast, 2<<30); err != nil {
		t.Fatal(err)
	}
	finds(t, "files that nobody removes", url, unhurried, examinetest.Levels{"files": examinetest.Warn})
}

// What a user may not make is told, and why.
func TestDoctor_Rights(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t, append([]string{"-Dzookeeper.enforceQuota=true"}, well...)...)
	hand := byHand(t, server)
	made(t, hand,
		zk.Create("/small", nil, zk.Persistent, zk.Anyone), zk.Create("/zookeeper/quota/small", nil, zk.Persistent, zk.Anyone),
		zk.Create("/zookeeper/quota/small/zookeeper_limits", []byte("count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"), zk.Persistent, zk.Anyone),
		zk.Create("/zookeeper/quota/small/zookeeper_stats", []byte("count=1,bytes=0"), zk.Persistent, zk.Anyone),
	)
	owner, err := zk.Dial(within(t), zk.Options{Addrs: []string{server.Addr()}, Timeout: time.Minute, Login: zk.Login{User: "owner", Password: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(within(t))
	made(t, owner, zk.Create("/own", nil, zk.Persistent, zk.Creators))
	finds(t, "the owner", "zk://owner:secret@"+server.Addr()+"/own", unhurried, nil)
	none := examinetest.Levels{"rights": examinetest.Bad, "names": examinetest.Skip, "leftovers": examinetest.Skip}
	finds(t, "an access list that forbids it", "zk://other:secret@"+server.Addr()+"/small?acl=auth", unhurried, examinetest.Levels{"rights": examinetest.Bad})
	if c, err := interlock.Open(within(t), "zk://other:secret@"+server.Addr()+"/own", unhurried); err == nil {
		defer c.Close()
		examinetest.Finds(t, "a folder of somebody else", c, none)
	}
	finds(t, "nobody's own nodes", server.URL()+"?acl=auth", unhurried, examinetest.Levels{"rights": examinetest.Bad})
	finds(t, "a quota that is used up", server.URL()+"/small", unhurried, examinetest.Levels{"rights": examinetest.Bad})
}

// What the servers make of a session, how many connections a host may have, and whether access
// lists count.
func TestDoctor_Settings(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t, append([]string{"-Dzookeeper.skipACL=yes", "minSessionTimeout=16000", "maxSessionTimeout=20000", "maxClientCnxns=30"}, well...)...)
	short := &interlock.Options{TTL: 12 * time.Second, Grace: 4 * time.Second}
	finds(t, "a TTL that it keeps", server.URL(), short, nil)
	finds(t, "one that is too short for it", server.URL(), &interlock.Options{TTL: 10 * time.Second, Grace: 3 * time.Second}, examinetest.Levels{"session": examinetest.Warn})
	finds(t, "the usual one, which is too long for it", server.URL(), &interlock.Options{Grace: 4 * time.Second}, examinetest.Levels{"ttl": examinetest.Warn})
	finds(t, "a user, whom it ignores", "zk://app:secret@"+server.Addr(), short, examinetest.Levels{"access lists": examinetest.Warn})
	for range 26 {
		byHand(t, server)
	}
	finds(t, "a crowd", server.URL(), short, examinetest.Levels{"connections": examinetest.Warn})
}

// What becomes of acknowledged changes when the machines crash, as far as the server tells it.
// TestTLS has a server that tells nothing.
func TestDoctor_Disk(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t, "-Dzookeeper.forceSync=no", "4lw.commands.whitelist=*")
	finds(t, "it does not wait for the disk", server.URL(), unhurried, examinetest.Levels{"flushing": examinetest.Warn})
}

// Servers that are no ensemble have locks of their own, each. Where all are gone that is no
// finding.
func TestDoctor_TwoStores(t *testing.T) {
	t.Parallel()
	one, two := servertest.ZooKeeper(t, well...), servertest.ZooKeeper(t, well...)
	finds(t, "two stores", one.URL()+","+two.Addr(), unhurried, examinetest.Levels{"ensemble": examinetest.Bad})
	d, err := driver.OpenURL(within(t), one.URL()+"?timeout=1s")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(within(t))
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	if found, err := d.(driver.Examiner).Examine(within(t), driver.Exam{TTL: time.Minute}); err == nil || len(found) > 0 {
		t.Errorf("%+v, %v; want that nobody answers", found, err)
	}
}

// Sessions that a member keeps to itself have no locks.
func TestDoctor_LocalSessions(t *testing.T) {
	t.Parallel()
	e := servertest.ZooKeeperEnsemble(t, 1, append([]string{"localSessionsEnabled=true"}, well...)...)
	finds(t, "sessions of one member", e.URL(), unhurried, examinetest.Levels{"rights": examinetest.Bad})
}

// member adds what is wrong with the version that is installed here to what is to be found in an
// ensemble.
func member(t *testing.T, s *servertest.Server, want examinetest.Levels) examinetest.Levels {
	t.Helper()
	answer, _, err := zk.Options{}.Word(within(t), s.Addr(), "srvr")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(answer, "version: ")
	all := examinetest.Levels{"members": driver.LevelOK}
	if zklock.Faulty(version) != "" {
		all["version"] = examinetest.Warn
	}
	maps.Copy(all, want)
	return all
}

// An ensemble of three is well; whoever is missing is told of, however the servers are named, and
// that there is no majority.
func TestDoctor_Ensemble(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers and their election, whose time nobody knows: make proof")
	}
	ctx := survives(t)
	e := servertest.ZooKeeperEnsemble(t, 3, append([]string{"tickTime=6000"}, well...)...)
	finds(t, "an ensemble that is well", e.URL(), unhurried, member(t, e.Members[0], nil))
	finds(t, "ticks that are long", e.URL(), &interlock.Options{TTL: 15 * time.Second, Grace: 5 * time.Second}, member(t, e.Members[0], examinetest.Levels{"ticks": examinetest.Warn}))
	finds(t, "one address", e.Members[0].URL(), unhurried, member(t, e.Members[0], examinetest.Levels{"addresses": examinetest.Warn}))
	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var gone *servertest.Server
	url := leader.URL()
	for _, m := range e.Members {
		switch {
		case m == leader:
		case gone == nil:
			gone = m
		default:
			url += "," + m.Addr()
		}
	}
	if err := gone.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Leader(ctx); err != nil {
		t.Fatal(err)
	}
	finds(t, "one of three is gone", e.URL(), unhurried, member(t, leader, examinetest.Levels{"answers": examinetest.Warn}))
	finds(t, "one that is not named is gone", url, unhurried, member(t, leader, examinetest.Levels{"followers": examinetest.Warn}))
	c, err := interlock.Open(ctx, url+"?timeout=1s", unhurried)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, m := range e.Members {
		if m != leader && m != gone {
			if err := m.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, err = leader.Serves(); err == nil; _, err = leader.Serves() {
		if ctx.Err() != nil {
			t.Fatal("alone it still serves")
		}
	}
	examinetest.Finds(t, "two of three are gone", c, examinetest.Levels{"answers": examinetest.Bad, "names": examinetest.Skip})
}

// One member more than an odd number is one more that can be lost.
func TestDoctor_EvenMembers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("four servers and their election, whose time nobody knows: make proof")
	}
	e := servertest.ZooKeeperEnsemble(t, 4, well...)
	finds(t, "an even number", e.URL(), unhurried, member(t, e.Members[0], examinetest.Levels{"members": examinetest.Warn}))
}

// Only the versions that have a fault are told of it.
func TestFaulty(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"3.4.14": "ZOOKEEPER-2355", "3.5.3-beta": "ZOOKEEPER-2355", "3.5.4": "ZOOKEEPER-3911", "3.6.2": "ZOOKEEPER-3911", "3.5.10": "ZOOKEEPER-4785", "3.6.3": "ZOOKEEPER-4785",
		"3.8.0-${mvngit.commit.id}": "ZOOKEEPER-4785", "3.8.4": "", "3.9.1": "ZOOKEEPER-4785", "3.9.2": "", "3.9.3": "ZOOKEEPER-4925", "3.9.4": "", "3.10.0": "", "4.0.0": "", "": "",
	} {
		if got := zklock.Faulty(version); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}
