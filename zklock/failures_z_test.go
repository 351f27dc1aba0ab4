package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// A connection that ends loses nothing, and trust does not reach as far as the servers' patience.
func TestZ01_ADisconnectIsNoLoss(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, l, id := opened(t, server)
	mine, waits := storetest.Mutex("mine"), storetest.Mutex("theirs")
	other, _, _, _ := opened(t, server)
	theirs := storetest.Mutex("theirs")
	storetest.Asks(t, other, theirs, true)
	storetest.Asks(t, s, mine, true)
	storetest.Asks(t, s, waits, false)
	for range 3 {
		l.Cut()
		renews(t, s)
	}
	if n, _ := zklock.SessionOf(d, id); n == 0 {
		t.Error("the session is gone")
	}
	if s.Valid() != 40*time.Second {
		t.Errorf("a session of a minute is trusted for %v, want two thirds", s.Valid())
	}
	select {
	case lost, open := <-s.(driver.LossNotifier).Lost():
		t.Errorf("lost %q, %v", lost, open)
	default:
	}
	storetest.Leaves(t, other, theirs, true)
	storetest.Awaits(t, s, waits)
	storetest.Leaves(t, s, mine, true)
}

// A node whose answer is lost is found, whether the request was carried out or not.
func TestZ02_TheAnswerIsLost(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	hand := byHand(t, server)
	storetest.Asks(t, s, storetest.Mutex("warm"), true)
	for i, way := range []wire.Direction{wire.Replies, wire.Requests, wire.Replies, wire.Requests} {
		c := storetest.Mutex("lost")
		heal := l.Stall(way)
		answered := make(chan error, 1)
		go func() {
			g, err := s.Acquire(within(t), c)
			if err == nil && !g.Held {
				err = errors.New("not held")
			}
			answered <- err
		}()
		storetest.Until(t, "what is lost", func() bool { return l.Count().Requests.Held+l.Count().Replies.Held > 0 })
		l.Cut()
		heal()
		err := <-answered
		if in := children(t, hand, "/lost"); len(in) != 1 {
			t.Fatalf("round %d: %d nodes stand in line for one claim", i, len(in))
		}
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		storetest.Leaves(t, s, c, true)
	}
}

// A node of another session is not ours, whatever it is called.
func TestZ03_ANodeOfAnotherSession(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	first, _, _, _ := opened(t, server)
	second, _, l, _ := opened(t, server)
	c := storetest.Mutex("whose")
	storetest.Asks(t, first, c, true)
	storetest.Asks(t, second, storetest.Mutex("warm"), true)
	heal := l.Stall(wire.Requests)
	answered := make(chan error, 1)
	go func() {
		g, err := second.Acquire(within(t), c)
		if err == nil && g.Held {
			err = errors.New("a node of another session is taken for ours")
		}
		answered <- err
	}()
	storetest.Until(t, "the request is held", func() bool { return l.Count().Requests.Held > 0 })
	l.Cut()
	heal()
	if err := <-answered; !errors.Is(err, driver.ErrGone) {
		t.Errorf("%v; want that the claim is gone", err)
	}
}

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

// Whatever ends an Acquire, its Release leaves nothing, also when the request is still under way.
func TestZ05_WhoGivesUpLeavesNothing(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	hand := byHand(t, server)
	storetest.Asks(t, s, storetest.Mutex("warm"), true)
	for i, way := range []wire.Direction{wire.Replies, wire.Requests} {
		c := storetest.Mutex("given-up")
		heal := l.Stall(way)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := s.Acquire(ctx, c); err == nil {
			t.Fatal("answered over a wire that is stalled")
		}
		cancel()
		released := make(chan error, 1)
		go func() {
			_, err := s.Release(within(t), c)
			released <- err
		}()
		heal()
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		if in := children(t, hand, "/given-up"); len(in) != 0 {
			t.Fatalf("round %d: %d nodes stand there for nobody", i, len(in))
		}
	}
}

// A Release that was lost, and that nobody repeats, is made up for by the next renewal.
func TestZ06_AReleaseIsLost(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	mine, next := storetest.Mutex("released"), storetest.Mutex("released")
	storetest.Asks(t, s, mine, true)
	storetest.Asks(t, other, next, false)
	heal := l.Stall(wire.Requests)
	failed := make(chan error, 1)
	go func() {
		_, err := s.Release(within(t), mine)
		failed <- err
	}()
	storetest.Until(t, "the request is held", func() bool { return l.Count().Requests.Held > 0 })
	l.Cut()
	heal()
	if err := <-failed; err == nil || errors.Is(err, driver.ErrSessionLost) {
		t.Fatalf("a Release without an answer: %v", err)
	}
	renews(t, s)
	storetest.Awaits(t, other, next)
}

// What was released while a waiter had no connection is found when it has one again.
func TestZ08_ReleasedWhileAWaiterIsAway(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, l, _ := opened(t, server)
	other, _, _, _ := opened(t, server)
	for range 3 {
		theirs, waits := storetest.Mutex("away"), storetest.Mutex("away")
		storetest.Asks(t, other, theirs, true)
		storetest.Asks(t, s, waits, false)
		l.Refuse()
		l.Cut()
		storetest.Leaves(t, other, theirs, true)
		if err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		storetest.Awaits(t, s, waits)
		storetest.Leaves(t, s, waits, true)
	}
}

// Waits and Acquires that end at any moment leave a claim that can be released, and nothing after that.
func TestZ09_CancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	holds := storetest.Mutex("cancelled")
	storetest.Asks(t, s, holds, true)
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			c := storetest.Mutex("cancelled")
			c.Queue = rand.IntN(3) > 0
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
			defer cancel()
			if _, err := s.Acquire(ctx, c); err == nil && c.Queue {
				_, _ = s.Wait(ctx, c) // whatever became of it
			}
			if _, err := s.Release(within(t), c); err != nil {
				t.Errorf("Release: %v", err)
			}
		})
	}
	all.Wait()
	if in := children(t, hand, "/cancelled"); len(in) != 1 {
		t.Errorf("%d nodes stand there, want that of the holder", len(in))
	}
	storetest.Leaves(t, s, holds, true)
}

// A client that slept through its session says so, and the next one has been let in.
func TestZ11_LongerAwayThanTheSessionLasts(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	d, l := connect(t, server, "")
	defer d.Close(context.Background())
	s, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	other, _, _, _ := opened(t, server)
	mine, next := storetest.Mutex("asleep"), storetest.Mutex("asleep")
	token := storetest.Asks(t, s, mine, true).Fence
	heal := l.Stall(wire.Both)
	storetest.Asks(t, other, next, false)
	storetest.Awaits(t, other, next)
	heal()
	if again := storetest.Asks(t, other, next, true).Fence; again < token+driver.Stride {
		t.Errorf("tokens %d, then %d", token, again)
	}
	for ended := false; !ended; {
		select {
		case _, open := <-s.(driver.LossNotifier).Lost():
			ended = !open
		case <-time.After(patience):
			t.Fatal("the session does not say that it has ended")
		}
	}
	if _, err := s.Renew(within(t)); !errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("Renew: %v", err)
	}
	if _, err := s.Acquire(within(t), storetest.Mutex("other")); !errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("Acquire: %v", err)
	}
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

// Curator's Revoker asks a holder to let go by writing to its node.
func TestZ14_RevokedByCurator(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	mine := storetest.Mutex("revoked")
	storetest.Asks(t, s, mine, true)
	do(t, hand, zk.Set("/revoked/"+children(t, hand, "/revoked")[0], []byte("__REVOKE__"), -1))
	select {
	case l := <-s.(driver.LossNotifier).Lost():
		if l != (driver.Loss{ID: mine.ID, Err: driver.ErrBroken}) {
			t.Errorf("lost %v", l)
		}
	case <-time.After(patience):
		t.Fatal("the holder is not told")
	}
	if _, err := s.Acquire(within(t), mine); !errors.Is(err, driver.ErrBroken) {
		t.Errorf("Acquire: %v", err)
	}
	storetest.Leaves(t, s, mine, false)
}

// The mark on a claim that is held is seen soon, whatever else its session takes meanwhile.
func TestAMarkIsSeenBesideOtherClaims(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	for range 20 { // what they begin goes on when mine is taken
		c := storetest.Mutex("others")
		storetest.Asks(t, s, c, true)
		storetest.Leaves(t, s, c, true)
	}
	mine := storetest.Mutex("marked")
	token := storetest.Asks(t, s, mine, true).Fence
	if err := d.(driver.Inspector).Break(within(t), mine.Name, driver.PublicID(mine.ID), token, false); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; {
		c := storetest.Mutex("others")
		storetest.Asks(t, s, c, true)
		storetest.Leaves(t, s, c, true)
		select {
		case l := <-s.(driver.LossNotifier).Lost():
			if l != (driver.Loss{ID: mine.ID, Err: driver.ErrBroken}) {
				t.Errorf("lost %v", l)
			}
			return
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("the holder is not told within %v", patience)
		}
	}
}

// Nobody who does not read what is lost holds up anybody.
func TestZ16_NobodyReadsTheLosses(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	hand := byHand(t, server)
	var all []driver.Claim
	for range 200 {
		c := storetest.Mutex("losses")
		storetest.Asks(t, s, c, len(all) == 0)
		all = append(all, c)
	}
	for _, node := range children(t, hand, "/losses") {
		do(t, hand, zk.Delete("/losses/"+node, -1))
	}
	told := make(chan int, 1)
	go func() {
		r, _ := s.Renew(within(t))
		told <- len(r.Lost)
	}()
	select {
	case lost := <-told:
		if lost != len(all) {
			t.Errorf("Renew after %d claims were lost names %d", len(all), lost)
		}
	case <-time.After(patience):
		t.Fatalf("Renew after %d claims were lost: no answer within %v", len(all), patience)
	}
	mine := storetest.Mutex("others")
	storetest.Asks(t, s, mine, true)
	storetest.Leaves(t, s, mine, true)
}
