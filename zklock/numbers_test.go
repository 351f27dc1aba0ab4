package zklock_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
)

// A parent that has numbered 2,147,483,647 children gives all others that number: nobody of ours
// holds with it.
func TestZ10_NumbersRunOut(t *testing.T) {
	t.Parallel()
	server := aged(t, 0, map[string]int32{
		"/spent": math.MaxInt32 - 2, "/again": math.MaxInt32 - 1,
		"/waits": 2, "/waits/locks": math.MaxInt32, "/leases": 2, "/leases/leases": math.MaxInt32,
	})
	hand := byHand(t, server)
	s, _, _, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	spent := func(name string, c driver.Claim) {
		t.Helper()
		g, err := s.Acquire(within(t), c)
		if err == nil {
			t.Errorf("%s: %+v with the last number twice", name, g)
		} else if !errors.Is(err, driver.ErrUnable) || !strings.Contains(err.Error(), name+" has numbered its children") || !strings.Contains(err.Error(), "or by hand") {
			t.Errorf("%s: %v; want that it says why it cannot", name, err)
		}
	}

	mine, next := storetest.Mutex("spent"), storetest.Mutex("spent") // the last two that have a number of their own
	storetest.Asks(t, s, mine, true)
	storetest.Asks(t, other, next, false)
	for range 3 {
		spent("/spent", storetest.Mutex("spent"))
		spent("/spent", of(driver.Read, "spent"))
	}
	if in := children(t, hand, "/spent"); len(in) != 2 {
		t.Errorf("in line stand %q", in)
	}
	storetest.Leaves(t, s, mine, true)
	storetest.Awaits(t, other, next)
	spent("/spent", storetest.Mutex("spent"))
	storetest.Leaves(t, other, next, true)
	spent("/spent", storetest.Mutex("spent"))
	do(t, hand, zk.Delete("/spent", -1))
	storetest.Asks(t, s, storetest.Mutex("spent"), true)

	mine = storetest.Mutex("again")
	storetest.Asks(t, s, mine, true)
	if g, _, err := s.(driver.Requeuer).Requeue(within(t), mine, storetest.Mutex("again")); !errors.Is(err, driver.ErrUnable) {
		t.Errorf("Requeue: %+v, %v; want that there is no number left", g, err)
	}

	spent("/waits/locks", permit("waits", 1, 2))
	storetest.Asks(t, s, permit("leases", 3, 5), true) // the numbers of leases say nothing
	storetest.Asks(t, other, permit("leases", 2, 5), true)
	for dir, want := range map[string]int{"/again": 0, "/waits/locks": 0, "/leases/locks": 0, "/leases/leases": 5} {
		if in := children(t, hand, dir); len(in) != want {
			t.Errorf("in %s stand %q", dir, in)
		}
	}
}

// Of an ensemble whose changes are beyond what tokens are made of nobody is given a token, and no
// claim stays in line for that. Who needs none is let in.
func TestChangesBeyondTheTokens(t *testing.T) {
	t.Parallel()
	server := aged(t, 1<<47, nil)
	hand := byHand(t, server)
	s, d, _, _ := opened(t, server)
	holds, waits, try := of(driver.Read, "old"), of(driver.Write, "old"), storetest.Mutex("new")
	storetest.Asks(t, s, holds, true)
	storetest.Asks(t, s, waits, false)
	storetest.Leaves(t, s, holds, true)
	if g, err := s.Wait(within(t), waits); !errors.Is(err, driver.ErrUnable) || !strings.Contains(err.Error(), "is beyond 0x7fffffffffff, the last that a token can be made of") {
		t.Errorf("a writer who waited: %+v, %v", g, err)
	}
	for _, try.Queue = range []bool{true, false} {
		if g, err := s.Acquire(within(t), try); !errors.Is(err, driver.ErrUnable) {
			t.Errorf("a mutex: %+v, %v; want that the store is unable", g, err)
		}
	}
	storetest.Asks(t, s, permit("seats", 1, 2), true)
	for _, name := range []string{"old", "new"} {
		if in := children(t, hand, "/"+name); len(in) != 0 {
			t.Errorf("in line for %s stand %q", name, in)
		}
	}
	do(t, hand, zk.Create("/new/lock-", nil, zk.EphemeralSequential, zk.Anyone))
	if line, err := d.(driver.Inspector).Line(within(t), "new"); err != nil || len(line.Claims) != 1 || !line.Claims[0].Held || line.Claims[0].Fence != 0 {
		t.Errorf("another program's claim is shown as %+v, %v; want no token", line.Claims, err)
	}
	renews(t, s)
}

// aged is a server that begins with a snapshot after that change, in which these nodes have had so
// many children. Parents come first in the snapshot.
func aged(t *testing.T, zxid int64, had map[string]int32) *servertest.Server {
	t.Helper()
	b := []byte("ZKSN")
	number := func(n int32) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	long := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) { number(int32(len(s))); b = append(b, s...) }
	number(2) // the version
	long(-1)  // of no database
	number(0) // sessions
	number(0) // access lists
	node := func(path string, cversion int32) {
		text(path)
		number(-1) // no data
		long(-1)   // for everybody
		for range 4 {
			long(0) // of nodes that were always there
		}
		number(0)
		number(cversion)
		number(0)
		long(0) // the session of no ephemeral node
		long(0)
	}
	node("", 0)
	node("/zookeeper", 0)
	node("/zookeeper/quota", 0)
	for depth := 1; depth <= 2; depth++ {
		for path, cversion := range had {
			if strings.Count(path, "/") == depth {
				node(path, cversion)
			}
		}
	}
	text("/")
	long(int64(adler32.Checksum(b)))
	text("/")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "version-2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "version-2", fmt.Sprintf("snapshot.%x", zxid)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := servertest.StartZooKeeper(within(t), servertest.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}
