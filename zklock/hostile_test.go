package zklock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// What is free is taken by two requests in one flight, and left by one; a wait costs one flight more, and being let in one request.
func TestFlights(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	other, _, behind, _ := opened(t, server)
	storetest.Asks(t, other, storetest.Mutex("warm"), true)
	spent := func(what string, of *line, flights, requests int64, f func()) {
		t.Helper()
		before, packets := of.calls.Load(), of.Count().Requests.Packets
		f()
		if got, sent := of.calls.Load()-before, of.Count().Requests.Packets-packets; got != requests || sent != flights {
			t.Errorf("%s costs %d requests in %d flights, want %d in %d", what, got, sent, requests, flights)
		}
	}
	mine, waits, again := storetest.Mutex("flights"), storetest.Mutex("flights"), storetest.Mutex("flights")
	spent("a name that is new to the servers", l, 2, 5, func() { storetest.Asks(t, s, mine, true) })
	spent("a release", l, 1, 1, func() { storetest.Leaves(t, s, mine, true) })
	mine = storetest.Mutex("flights")
	spent("what is free", l, 1, 2, func() { storetest.Asks(t, s, mine, true) })
	spent("to come and wait", behind, 2, 4, func() { storetest.Asks(t, other, waits, false) })
	gives, later := storetest.Mutex("flights"), storetest.Mutex("flights")
	storetest.Asks(t, other, gives, false)
	storetest.Asks(t, other, later, false)
	spent("to give up", behind, 1, 1, func() { storetest.Leaves(t, other, gives, false) })
	spent("a release", l, 1, 1, func() { storetest.Leaves(t, s, mine, true) })
	spent("to be let in", behind, 1, 1, func() { storetest.Awaits(t, other, waits) })
	spent("to give up behind another holder", behind, 2, 3, func() { storetest.Leaves(t, other, later, false) })
	spent("to leave and come again", behind, 2, 3, func() {
		g, was, err := other.(driver.Requeuer).Requeue(within(t), waits, again)
		if err != nil || !was || !g.Held || g.Fence == 0 {
			t.Errorf("Requeue: %+v, %v, %v", g, was, err)
		}
	})
	gives = storetest.Mutex("flights")
	storetest.Asks(t, s, gives, false)
	storetest.Leaves(t, other, again, true)
	storetest.Leaves(t, s, gives, true) // whether it has heard of it or not
}

// Of two hundred who wait a release wakes one.
func TestAReleaseWakesOne(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	holds := storetest.Mutex("crowd")
	storetest.Asks(t, s, holds, true)
	const crowd = 200
	other, _, l, _ := opened(t, server)
	var all []driver.Claim
	for range crowd {
		c := storetest.Mutex("crowd")
		storetest.Asks(t, other, c, false)
		all = append(all, c)
	}
	var waits sync.WaitGroup
	for _, c := range all {
		waits.Go(func() { storetest.Awaits(t, other, c); storetest.Leaves(t, other, c, true) })
	}
	before := l.calls.Load()
	storetest.Leaves(t, s, holds, true)
	waits.Wait()
	if got := l.calls.Load() - before; got != 2*crowd { // a look and a release each
		t.Errorf("%d handoffs cost %d requests, want %d", crowd, got, 2*crowd)
	}
}

// Every way to open a store that is wrong is refused with what would be right, and without a secret.
func TestWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	hand := byHand(t, server)
	do(t, hand, zk.Create("/there", nil, zk.Persistent, zk.Anyone))
	nobody := servertest.Nobody(t)
	for url, want := range map[string]string{
		"zk://" + server.Addr() + "/missing":                        "zkCli.sh create /missing",
		"zk://" + server.Addr() + "/there/../x":                     "without . and ..",
		"zk://" + server.Addr() + "/there//x":                       "without . and ..",
		"zk://" + server.Addr() + "/zookeeper":                      "not below /zookeeper",
		"zk://" + server.Addr() + "/%F0%9F%94%92":                   "cannot have",
		"zk://" + server.Addr() + "?timeout=soon":                   "want a duration above 0",
		"zk://" + server.Addr() + "?timeout=-1s":                    "want a duration above 0",
		"zk://" + server.Addr() + "?tiemout=1s":                     "unknown parameter",
		"zk://" + server.Addr() + "?mutex=fair":                     "want semaphore",
		"zk://" + server.Addr() + "?layout=zkc":                     "want curator or kazoo",
		"zk://" + server.Addr() + "?acl=me":                         "want world or auth",
		"zk://" + server.Addr() + "?ca=/dev/null":                   "want zk+tls://",
		"zk://:hush@" + server.Addr():                               "without a user",
		"zk://u@" + server.Addr() + "?sasl=GSSAPI":                  "Kerberos (GSSAPI) is not supported",
		"zk://u@" + server.Addr() + "?layout=kazoo&mutex=semaphore": "want Curator's",
		"zk://" + server.Addr() + "//":                              `path "//": want one as /locks`,
		"zk://," + server.Addr():                                    "an address of a server is empty",
		"zk:///locks":                                               "names no server",
		"zk:locks":                                                  "names no server",
		"zk://" + nobody + "?timeout=2s":                            nobody,
		"zk://" + nobody + ",127.0.0.1:2?timeout=2s":                "127.0.0.1:2",
	} {
		d, err := driver.OpenURL(within(t), url)
		if err == nil {
			_ = d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v; want an error that says %q", url, err, want)
		}
	}
	d, err := driver.OpenURL(within(t), "zk://"+server.Addr()+"/there/")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if key := d.(driver.Keyer).Key("a/b"); key != "/there/a%2Fb" {
		t.Errorf("the key is %s", key)
	}
}

// A claim that cannot be kept is refused, and nothing of it is left.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	for want, change := range map[string]func(*driver.Claim){
		"want a mutex, write": func(c *driver.Claim) { c.Kind = 7 },
		"want 1 under":        func(c *driver.Claim) { c.Kind, c.Weight = driver.Read, 2 },
		"want 1 ≤ weight":     func(c *driver.Claim) { c.Kind, c.Weight, c.Limit = driver.Permit, 3, 2 },
		"under limit 3":       func(c *driver.Claim) { c.Weight, c.Limit = 1, 3 },
		"name of 0":           func(c *driver.Claim) { c.Name = "" },
		"name of 1025":        func(c *driver.Claim) { c.Name = strings.Repeat("x", 1025) },
	} {
		c := storetest.Mutex("refused")
		change(&c)
		_, err := s.Acquire(within(t), c)
		refused(t, err, want)
	}
	hand := byHand(t, server)
	do(t, hand, zk.Create("/leaf", nil, zk.Ephemeral, zk.Anyone))
	for _, c := range []driver.Claim{storetest.Mutex("leaf"), permit("leaf", 1, 2)} {
		_, err := s.Acquire(within(t), c)
		refused(t, err, "an ephemeral node can have no children")
	}
	if names := children(t, hand, "/"); slices.Contains(names, "refused") {
		t.Errorf("there are %q", names)
	}
}

// A store without a server says so as long as that lasts, and works when it is back.
func TestTheServerIsAway(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	mine := storetest.Mutex("away")
	storetest.Asks(t, s, mine, true)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Renew(ctx); err == nil || errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("Renew without a server: %v", err)
	}
	if _, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: time.Minute}); !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("Open without a server: %v; want that nothing was sent", err)
	}
	if err := server.Restart(within(t)); err != nil {
		t.Fatal(err)
	}
	renews(t, s)
	storetest.Leaves(t, s, mine, true)
}

// The locks of a client live on when the leader dies, and tokens grow in the next one's epoch.
func TestTheLeaderDies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers and their election, whose time nobody knows: make proof")
	}
	e := servertest.ZooKeeperEnsemble(t, 3)
	d, err := driver.OpenURL(within(t), e.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(context.Background())
	var all [2]driver.Session
	for i := range all {
		if all[i], err = d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	mine, next := storetest.Mutex("led"), storetest.Mutex("led")
	first := storetest.Asks(t, all[0], mine, true).Fence
	storetest.Asks(t, all[1], next, false)
	leader, err := e.Leader(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := e.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		renews(t, s)
	}
	storetest.Leaves(t, all[0], mine, true)
	storetest.Awaits(t, all[1], next)
	again := storetest.Mutex("led")
	storetest.Asks(t, all[0], again, false)
	storetest.Leaves(t, all[1], next, true)
	storetest.Awaits(t, all[0], again)
	if token := storetest.Asks(t, all[0], again, true).Fence; token < first+2*driver.Stride || token>>37 == first>>37 { // 32 bits of a change are its epoch's
		t.Errorf("tokens %#x, and in the next epoch %#x", first, token)
	}
}

var _ interface {
	driver.Keyer
	driver.Inspector
	driver.Watcher
} = (*zklock.Driver)(nil)
