package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
)

// Who is no longer in line does not hold, although nobody is ahead.
func TestZ04_TheOwnNodeIsGone(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	theirs, waits := storetest.Mutex("gone"), storetest.Mutex("gone")
	storetest.Asks(t, other, theirs, true)
	before := children(t, hand, "/gone")
	storetest.Asks(t, s, waits, false)
	for _, node := range children(t, hand, "/gone") {
		if node != before[0] {
			do(t, hand, zk.Delete("/gone/"+node, -1))
		}
	}
	storetest.Leaves(t, other, theirs, true)
	if g, err := s.Wait(within(t), waits); !errors.Is(err, driver.ErrGone) {
		t.Errorf("Wait of a claim whose node is gone: held %v, %v; want ErrGone", g.Held, err)
	}
	renews(t, s, waits)
	storetest.Leaves(t, s, waits, false)
	renews(t, s)
}

// Children that are no claims are in nobody's way, and those of other programs are.
func TestZ14_ForeignAndJunkChildren(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	hand := byHand(t, server)
	do(t, hand, zk.Create("/junk", nil, zk.Persistent, zk.Anyone))
	for _, node := range []string{"locks", "leases", "x", "-", "lock-", "_c_junk-lock-000", "_c_junk-lock-0000000000", "backup-9999999999", "a--2147483648", "é-0000000000"} {
		do(t, hand, zk.Create("/junk/"+node, []byte("junk"), zk.Persistent, zk.Anyone))
	}
	for _, queue := range []bool{true, false} {
		mine := storetest.Mutex("junk")
		mine.Queue = queue
		storetest.Asks(t, s, mine, true)
		storetest.Leaves(t, s, mine, true)
	}
	for _, prefix := range []string{"_c_0123456789abcdef0123456789abcdef-lock-", "0123456789abcdef0123456789abcdef__lock__", "x-72057594037927936-", "lock-"} {
		foreign := zk.Create("/junk/"+prefix, []byte("10.0.0.1"), zk.EphemeralSequential, zk.Anyone)
		do(t, hand, foreign)
		waits, try := storetest.Mutex("junk"), storetest.Mutex("junk")
		try.Queue = false
		storetest.Asks(t, s, try, false)
		storetest.Asks(t, s, waits, false)
		line, err := d.(driver.Inspector).Line(within(t), "junk")
		if err != nil || len(line.Claims) != 2 || !line.Claims[0].Foreign || line.Claims[0].Owner.Name != "10.0.0.1" || line.Claims[1].Foreign {
			t.Errorf("behind %s the line is %+v, %v", prefix, line.Claims, err)
		}
		if err := d.(driver.Inspector).Break(within(t), "junk", line.Claims[0].PublicID, line.Claims[0].Fence, false); !errors.Is(err, driver.ErrOnlyNow) {
			t.Errorf("a foreign claim is marked: %v", err)
		}
		do(t, hand, zk.Delete(foreign.Path, -1))
		storetest.Awaits(t, s, waits)
		storetest.Leaves(t, s, waits, true)
	}
}

// Who may not see whether the one ahead is there is refused, and stands in nobody's way.
func TestTheOneAheadMayNotBeRead(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	owner, err := zk.Dial(within(t), zk.Options{Addrs: []string{server.Addr()}, Timeout: time.Minute, Login: zk.Login{User: "app", Password: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	hidden := zk.Create("/mixed/lock-", nil, zk.EphemeralSequential, zk.Creators)
	do(t, owner, zk.Create("/mixed", nil, zk.Persistent, zk.Anyone), hidden)
	_, err = s.Acquire(within(t), storetest.Mutex("mixed"))
	refused(t, err, "the access list of the node forbids it")
	if in := children(t, hand, "/mixed"); len(in) != 1 {
		t.Errorf("after a claim was refused there stand %q", in)
	}
	between := zk.Create("/mixed/lock-", nil, zk.EphemeralSequential, zk.Anyone)
	do(t, hand, between)
	mine := storetest.Mutex("mixed")
	storetest.Asks(t, s, mine, false)
	do(t, hand, zk.Delete(between.Path, -1))
	_, err = s.Wait(within(t), mine)
	refused(t, err, "the access list of the node forbids it")
	if in := children(t, hand, "/mixed"); len(in) != 1 {
		t.Errorf("after a wait was refused there stand %q", in)
	}
	do(t, owner, zk.Delete(hidden.Path, -1))
	storetest.Asks(t, s, storetest.Mutex("mixed"), true)
}

// A node of no session among those that wait for permits is in nobody's way, and those that hold
// stay in the way of others.
func TestJunkInTheLineOfASemaphore(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	for _, node := range []string{"/seat", "/seat/locks", "/seat/locks/lock-0000000000"} {
		do(t, hand, zk.Create(node, nil, zk.Persistent, zk.Anyone))
	}
	mine, next := permit("seat", 1, 1), permit("seat", 1, 1)
	storetest.Asks(t, s, mine, true)
	storetest.Asks(t, other, next, false)
	storetest.Leaves(t, s, mine, true)
	storetest.Awaits(t, other, next)
	storetest.Leaves(t, other, next, true)
}
