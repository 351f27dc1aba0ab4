package etcdlock_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// finds has the doctor look by a client of its own. What is wrong with the version that is
// installed here is wrong everywhere.
func finds(t *testing.T, what string, c *clientv3.Client, want examinetest.Levels) {
	t.Helper()
	all := examinetest.Levels{}
	maps.Copy(all, want)
	s, err := c.Status(t.Context(), c.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	if etcdlock.Faulty(s.Version) != "" {
		all["version"] = examinetest.Warn
	}
	d, err := interlock.New(opened(t, c, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	examinetest.Finds(t, what, d, all)
}

// Three members are well; of one each loss is the last.
func TestDoctor_Members(t *testing.T) {
	t.Parallel()
	finds(t, "three members", client(t, servertest.EtcdMembers(t, 3).Addrs()...), nil)
	finds(t, "one member", client(t, servertest.Etcd(t).Addr()), alone)
}

// alone is what is wrong with one member.
var alone = examinetest.Levels{"members": examinetest.Warn}

// A member that does not answer is told of.
func TestDoctor_AMemberIsGone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a member that is gone is asked until its time for an answer is over: make proof")
	}
	m := servertest.EtcdMembers(t, 3)
	c := client(t, m.Addrs()...)
	if err := m.Members[2].Kill(); err != nil {
		t.Fatal(err)
	}
	finds(t, "one of three is gone", c, examinetest.Levels{"answers": examinetest.Warn})
}

// Members of two clusters are no store: who asks one of them hears nothing of the other.
func TestDoctor_TwoClusters(t *testing.T) {
	t.Parallel()
	a, b := servertest.Etcd(t), servertest.Etcd(t)
	c := client(t, a.Addr(), b.Addr())
	finds(t, "two clusters", c, examinetest.Levels{"members": examinetest.Warn, "cluster": examinetest.Bad})
}

// What all members tell is told once, and by each in an order of its own.
func TestAlarms(t *testing.T) {
	t.Parallel()
	a, b := etcdlock.Alarms([]string{"memberID:2 alarm:NOSPACE ", "memberID:1 alarm:NOSPACE "}), etcdlock.Alarms([]string{"memberID:1 alarm:NOSPACE ", "memberID:2 alarm:NOSPACE "})
	if want := "memberID:1 alarm:NOSPACE; memberID:2 alarm:NOSPACE"; a != want || b != want {
		t.Errorf("%q and %q, want %q", a, b, want)
	}
}

// fill writes a MiB.
func fill(t *testing.T, c *clientv3.Client) error {
	t.Helper()
	_, err := c.Put(t.Context(), "ballast", strings.Repeat("x", 1<<20))
	return err
}

// History that nobody compacts is told of.
func TestDoctor_History(t *testing.T) {
	t.Parallel()
	c := client(t, servertest.Etcd(t).Addr())
	for range 18 {
		if err := fill(t, c); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Until(t, "the store has taken it in", func() bool {
		s, err := c.Status(t.Context(), c.Endpoints()[0])
		return err == nil && s.DbSize > 17<<20
	})
	finds(t, "18 MiB of history", c, examinetest.Levels{"members": examinetest.Warn, "history": examinetest.Warn})
	r, err := c.Get(t.Context(), "ballast")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	finds(t, "it is compacted", c, alone)
}

// A quota that is used up is told of.
func TestDoctor_Space(t *testing.T) {
	t.Parallel()
	c := client(t, servertest.Etcd(t, "--quota-backend-bytes=4194304").Addr())
	for fill(t, c) == nil { // until the quota is used up
	}
	finds(t, "the quota is used up", c, examinetest.Levels{"members": examinetest.Warn, "alarms": examinetest.Bad, "rights": examinetest.Skip})
}

// What a user may not write is told: where each client writes there is no lock, of a name that is
// the doctor's nothing follows.
func TestDoctor_Rights(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t, "--bcrypt-cost=4") // which takes a tenth of a second else, for each user and each login
	admin := client(t, server.Addr())
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	end := func(prefix string) string { return clientv3.GetPrefixRangeEnd(prefix) }
	must(admin.UserAdd(t.Context(), "root", "root"))
	must(admin.UserGrantRole(t.Context(), "root", "root"))
	for user, prefixes := range map[string][]string{"all": {"interlock"}, "own": {"interlock:sessions/", "jobs/"}, "none": {"interlock-doctor", "jobs/"}} {
		must(admin.RoleAdd(t.Context(), user))
		for _, prefix := range prefixes {
			must(admin.RoleGrantPermission(t.Context(), user, prefix, end(prefix), clientv3.PermissionType(clientv3.PermReadWrite)))
		}
		if user == "none" {
			must(admin.RoleGrantPermission(t.Context(), user, "interlock:sessions/", end("interlock:sessions/"), clientv3.PermissionType(clientv3.PermRead)))
		}
		must(admin.UserAdd(t.Context(), user, user))
		must(admin.UserGrantRole(t.Context(), user, user))
	}
	must(admin.AuthEnable(t.Context()))
	for user, want := range map[string]examinetest.Levels{
		"all": {"names": examinetest.Skip}, "none": {"names": examinetest.Skip, "rights": examinetest.Bad},
		"own": {"names": examinetest.Skip, "latency": examinetest.Skip, "history": examinetest.Skip, "rights": examinetest.Skip},
	} {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Username: user, Password: user})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		want["members"] = examinetest.Warn
		finds(t, fmt.Sprint("a user of ", user), c, want)
	}
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Username: "root", Password: "root"})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r, err := root.Get(context.Background(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || r.Count > 0 {
		t.Errorf("%d keys, %v; want that the doctor has written none", r.Count, err)
	}
}

// Only the versions that have a fault are told of it.
func TestFaulty(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"3.4.23": "stood still", "3.4.28": "", "3.3.1": "stood still", "3.5.2": "other data", "3.5.9": "stood still", "3.5.10": "", "3.6.0-rc.1": "", "4.0.0": "", "": ""} {
		if got := etcdlock.Faulty(version); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}
