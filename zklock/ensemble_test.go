package zklock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
)

// sessionOver is a session of a minute over the servers of a URL.
func sessionOver(t *testing.T, url string) driver.Session {
	t.Helper()
	d, err := driver.OpenURL(within(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = d.Close(ctx)
	})
	s, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tellsNoLoss insists that a session has not said that it lost anything.
func tellsNoLoss(t *testing.T, s driver.Session) {
	t.Helper()
	select {
	case id, open := <-s.(driver.LossNotifier).Lost():
		t.Errorf("told that %v is lost; the session lives: %v", id, open)
	default:
	}
}

// survives bounds a test in which members of an ensemble are killed, and elect.
func survives(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Who waits when the leader is killed is let in afterwards, in the order of coming, and nobody is
// told of a loss as long as there is another leader in two thirds of the timeout.
func TestTheLeaderDiesUnderWaiters(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers and their election, whose time nobody knows: make proof")
	}
	const crowd = 50
	ctx := survives(t)
	e := servertest.ZooKeeperEnsemble(t, 3)
	var clients []*interlock.Client
	for range 1 + crowd {
		c, err := interlock.Open(ctx, e.URL(), &interlock.Options{TTL: 40 * time.Second, Patience: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	held, err := clients[crowd].Mutex("crowd").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.OpenURL(ctx, e.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	var all sync.WaitGroup
	var mu sync.Mutex
	var came []int
	token := held.Fence()
	for i, c := range clients[:crowd] {
		all.Go(func() {
			lease, err := c.Mutex("crowd").Lock(ctx)
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if came = append(came, i); lease.Fence() <= token {
				t.Errorf("waiter %d has token %d after %d", i, lease.Fence(), token)
			}
			token = lease.Fence()
			if err := errors.Join(lease.Err(), lease.Release()); err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
		})
		storetest.Until(t, "who has come stands in line", func() bool { return waiters(t, d, "crowd") == i+1 })
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Leader(ctx); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(held.Err(), held.Release()); err != nil {
		t.Errorf("the holder: %v", err)
	}
	all.Wait()
	if !slices.IsSorted(came) || len(came) != crowd {
		t.Errorf("those who waited were let in as %v", came)
	}
}

// parted are three members that follow each other over wires.
type parted struct {
	*servertest.Ensemble
	mu    sync.Mutex
	wires [3][3]*wire.Wire // from, to
}

func apart(t *testing.T, args ...string) *parted {
	t.Helper()
	p := &parted{}
	p.Ensemble = servertest.ZooKeeperEnsembleOver(t, len(p.wires), func(from, to int, addr string) (string, error) {
		w, err := wire.Listen(t.Context(), addr)
		if err != nil {
			return "", err
		}
		t.Cleanup(w.Close)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wires[from][to] = w
		return w.Addr(), nil
	}, args...)
	return p
}

// part holds back whatever goes between one member and the others, until heal is called.
func (p *parted) part(member int) (heal func()) {
	var heals []func()
	for other := range p.wires {
		if other != member {
			heals = append(heals, p.wires[member][other].Stall(wire.Both), p.wires[other][member].Stall(wire.Both))
		}
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// leads returns the place of the member that leads.
func (p *parted) leads(t *testing.T) int {
	t.Helper()
	leader, err := p.Leader(survives(t))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Index(p.Members, leader)
}

// follows returns when another member than that leads.
func (p *parted) follows(t *testing.T, old int) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx := survives(t); ctx.Err() == nil; <-tick.C {
		for i, m := range p.Members {
			if mode, err := m.Serves(); i != old && err == nil && mode == "leader" {
				return
			}
		}
	}
	t.Fatal("never seen: another one leads")
}

// A leader that reaches nobody is followed by another one. What its clients hold goes on over the
// others, and is renewed by nobody who has not asked the leader of now.
func TestTheLeaderIsPartitioned(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers and their election, whose time nobody knows: make proof")
	}
	ctx := survives(t)
	p := apart(t, "initLimit=30", "syncLimit=30") // or else it takes long until they vote for one that can be followed
	old := p.leads(t)
	for old == 2 { // of members that know the same the last is elected, also when nobody can follow it
		if err := p.Members[2].Kill(); err != nil {
			t.Fatal(err)
		}
		old = p.leads(t)
		if err := p.Members[2].Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if err := p.Await(ctx); err != nil {
			t.Fatal(err)
		}
	}
	s, other, pinned := sessionOver(t, p.URL()), sessionOver(t, p.URL()), sessionOver(t, "zk://"+p.Members[old].Addr())
	mine, next, alone := storetest.Mutex("led"), storetest.Mutex("led"), storetest.Mutex("alone")
	first := storetest.Asks(t, s, mine, true).Fence
	storetest.Asks(t, other, next, false)
	storetest.Asks(t, pinned, alone, true)
	heal := p.part(old)
	p.follows(t, old)
	renews(t, s)
	renews(t, other)
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if r, err := pinned.Renew(short); err == nil || errors.Is(err, driver.ErrSessionLost) {
		t.Errorf("who reaches nobody but the old leader is renewed: %+v, %v", r, err)
	}
	storetest.Leaves(t, s, mine, true)
	storetest.Awaits(t, other, next)
	if token := storetest.Asks(t, other, next, true).Fence; token < first+driver.Stride {
		t.Errorf("tokens %#x, then %#x", first, token)
	}
	heal()
	if err := p.Await(ctx); err != nil {
		t.Fatal(err)
	}
	renews(t, pinned)
	storetest.Leaves(t, pinned, alone, true)
	for _, s := range []driver.Session{s, other, pinned} {
		tellsNoLoss(t, s)
	}
}

// A follower that the leader does not hear goes on to answer reads for a while, and renews nothing
// in that time.
func TestAFollowerIsPartitioned(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers and their election, whose time nobody knows: make proof")
	}
	p := apart(t, "syncLimit=10000")
	leader := p.leads(t)
	follower := (leader + 1) % len(p.Members)
	pinned, other := sessionOver(t, "zk://"+p.Members[follower].Addr()), sessionOver(t, "zk://"+p.Members[leader].Addr())
	hand := byHand(t, p.Members[follower])
	mine, next := storetest.Mutex("follows"), storetest.Mutex("follows")
	storetest.Asks(t, pinned, mine, true)
	storetest.Asks(t, other, next, false)
	renews(t, pinned)
	heal := p.part(follower)
	do(t, hand, zk.Get("/follows", false))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if r, err := pinned.Renew(ctx); err == nil || errors.Is(err, driver.ErrSessionLost) {
			t.Errorf("a follower without its leader renews: %+v, %v", r, err)
		}
		cancel()
	}
	do(t, hand, zk.Get("/follows", false))
	heal()
	renews(t, pinned)
	tellsNoLoss(t, pinned)
	storetest.Leaves(t, pinned, mine, true)
	storetest.Awaits(t, other, next)
}

// A client whose member answers no more goes to another one, finds there what became of its
// request, and loses nothing.
func TestAMemberIsSilent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a client waits for a third of its session before it leaves a server: make proof")
	}
	e := servertest.ZooKeeperEnsemble(t, 3)
	hand := byHand(t, e.Members[0])
	for _, way := range []wire.Direction{wire.Replies, wire.Both} {
		var wires []*wire.Wire
		url := "zk://"
		for i, m := range e.Members {
			w := wire.New(t, m.Addr())
			if wires = append(wires, w); i > 0 {
				url += ","
			}
			url += w.Addr()
		}
		s := sessionOver(t, url)
		mine, c := storetest.Mutex("kept"), storetest.Mutex("silent")
		storetest.Asks(t, s, mine, true)
		used := slices.IndexFunc(wires, func(w *wire.Wire) bool {
			before := w.Count().Requests.Packets
			renews(t, s)
			return w.Count().Requests.Packets > before
		})
		heal := wires[used].Stall(way)
		g, err := s.Acquire(survives(t), c)
		if err != nil || !g.Held {
			t.Fatalf("%v: Acquire: held %v, %v", way, g.Held, err)
		}
		if in := children(t, hand, "/silent"); len(in) != 1 {
			t.Errorf("%v: %d nodes stand in line for one claim", way, len(in))
		}
		renews(t, s)
		tellsNoLoss(t, s)
		heal()
		storetest.Leaves(t, s, c, true)
		storetest.Leaves(t, s, mine, true)
	}
}

// Members that are restarted one after another interrupt nobody for good: locks go round, and
// nothing is lost.
func TestMembersAreRestartedOneAfterAnother(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers and their election, whose time nobody knows: make proof")
	}
	ctx := survives(t)
	e := servertest.ZooKeeperEnsemble(t, 3)
	kept := sessionOver(t, e.URL())
	mine := storetest.Mutex("kept")
	storetest.Asks(t, kept, mine, true)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	inside, token, rounds := 0, uint64(0), 0
	for range 6 {
		c, err := interlock.Open(ctx, e.URL(), &interlock.Options{TTL: 40 * time.Second, Patience: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				lease, err := c.Mutex("rounds").Lock(ctx)
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				mu.Lock()
				if inside++; inside > 1 || lease.Fence() <= token {
					t.Errorf("%d hold, token %d after %d", inside, lease.Fence(), token)
				}
				token, rounds = lease.Fence(), rounds+1
				inside--
				mu.Unlock()
				if err := lease.Release(); err != nil && !errors.Is(err, interlock.ErrUncertain) || errors.Is(err, interlock.ErrLost) {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return rounds }
	for _, m := range e.Members {
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := m.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if err := e.Await(ctx); err != nil {
			t.Fatal(err)
		}
		renews(t, kept)
		before := count()
		storetest.Until(t, "the lock goes round", func() bool { return count() > before+12 })
	}
	close(stop)
	all.Wait()
	tellsNoLoss(t, kept)
	storetest.Leaves(t, kept, mine, true)
}
