package zklock_test

import (
	"context"
	"errors"
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
