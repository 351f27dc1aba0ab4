package servertest_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

func TestSlotIsTheServers(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 1, 0)
	for _, key := range []string{"", "123456789", "a", "a}b", "{}", "{}x", "{a}b", "x{a}y{b}", "{{a}}", "{a", "ü{ö}ä", "a\nb"} {
		if got, want := strconv.Itoa(c.Slot(key)), said(t, c.Nodes[0], "CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("the slot of %q is %s, the server says %s", key, got, want)
		}
	}
}

func TestClusterServesEverySlot(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 3, 0)
	var urls []string
	for _, s := range c.Nodes {
		urls = append(urls, s.Addr())
	}
	if want := "redis+cluster://" + strings.Join(urls, ","); c.URL() != want {
		t.Errorf("URL %s, want %s", c.URL(), want)
	}
	owned := map[*servertest.Server]int{}
	for _, slot := range []int{0, 5460, 5461, 10921, 10922, 10923, 16383} {
		owned[c.Owner(slot)]++
	}
	if len(owned) != 3 || owned[nil] != 0 {
		t.Errorf("the owners of slots at the edges: %v", owned)
	}
	for i := range 20 {
		key := fmt.Sprint("key-", i)
		if got := said(t, c.Owner(c.Slot(key)), "SET", key, "x"); got != "OK" {
			t.Errorf("SET %s at the owner of its slot: %s", key, got)
		}
	}
}

func TestClusterMovesASlotWithItsKeys(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 3, 1) // replicas learn of the move by gossip
	slot := c.Slot("{tag}")
	from := c.Owner(slot)
	const keys = 250
	for i := range keys {
		said(t, from, "SET", fmt.Sprint("{tag}\n", i), strconv.Itoa(i), "PX", "600000")
	}
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 { // the second one has nothing to do
		if err := c.Move(ctx, slot, to); err != nil {
			t.Fatal(err)
		}
	}
	if c.Owner(slot) != to {
		t.Errorf("the owner is %v", c.Owner(slot))
	}
	if got := said(t, to, "CLUSTER", "COUNTKEYSINSLOT", strconv.Itoa(slot)); got != strconv.Itoa(keys) {
		t.Errorf("%s keys came along, want %d", got, keys)
	}
	if ttl, err := strconv.Atoi(said(t, to, "PTTL", "{tag}\n7")); err != nil || ttl < 300_000 || ttl > 600_000 {
		t.Errorf("time to live %d ms, %v", ttl, err)
	}
	for _, s := range c.Nodes {
		got, err := s.Do("GET", "{tag}\n7")
		if s == to {
			if got != "7" || err != nil {
				t.Errorf("the new owner has %q, %v", got, err)
			}
		} else if want := fmt.Sprintf("MOVED %d %s", slot, to.Addr()); err == nil || err.Error() != want {
			t.Errorf("another node says %q, %v, want %s", got, err, want)
		}
	}
}

func TestClusterPromotesTheReplicaOfADeadMaster(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 3, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	slot := c.Slot("kept")
	first := c.Owner(slot)
	said(t, first, "SET", "kept", "yes")
	dead := 0
	for c.Nodes[dead] != first {
		dead++
	}
	arrives(t, c.Nodes[dead+3])
	if err := c.KillMaster(ctx, dead); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Owner(slot), c.Nodes[dead+3]; got != want {
		t.Errorf("the owner is %v, want the dead master's replica %v", got, want)
	}
	if got := said(t, c.Owner(slot), "GET", "kept"); got != "yes" {
		t.Errorf("the promoted replica has %q", got)
	}
	for name, i := range map[string]int{"a dead node": dead, "a master without a replica": dead + 3} {
		pid := c.Nodes[i].Pid()
		if err := c.KillMaster(ctx, i); err == nil || c.Nodes[i].Pid() != pid {
			t.Errorf("KillMaster of %s: %v", name, err)
		}
	}
	if err := first.Restart(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestClusterRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		masters, replicas int
		o                 servertest.Options
	}{{0, 0, servertest.Options{}}, {3, -1, servertest.Options{}}, {3, 0, servertest.Options{Port: 1}}} {
		if got, err := servertest.StartCluster(t.Context(), c.masters, c.replicas, c.o); err == nil {
			t.Errorf("%d masters with %d replicas and %+v: %v", c.masters, c.replicas, c.o, got)
		}
	}
}
