package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A lock that is free is taken by one transaction and released by one deletion, and the line that
// waits is told without a request.
func TestRequests(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	ours, theirs := newWay(t, server.Addr()), newWay(t, server.Addr())
	a, b := session(t, opened(t, ours.client, nil)), session(t, opened(t, theirs.client, nil))
	const txn, remove = "/etcdserverpb.KV/Txn", "/etcdserverpb.KV/DeleteRange"

	c := mutex("free")
	ours.forget()
	hold(t, a, c)
	release(t, a, c)
	if got := ours.requests(); !slices.Equal(got, []string{txn, remove}) {
		t.Errorf("a free pair is %q, want a transaction and a deletion", got)
	}

	// Two processes hand a lock over; of several names each has a watch, of several claims of a
	// name there is one.
	first, second := mutex("busy"), mutex("busy")
	hold(t, a, first)
	queue(t, b, second)
	var others []driver.Claim
	for range 3 {
		others = append(others, mutex("busy"))
		queue(t, b, others[len(others)-1])
	}
	theirs.forget()
	told := waiting(t, theirs, b, second)
	for _, c := range others {
		begin(t, b, c)
	}
	ours.forget()
	release(t, a, first)
	if g := <-told; !g.Held {
		t.Fatalf("who waits is told %+v", g)
	}
	if got := ours.requests(); !slices.Equal(got, []string{remove}) {
		t.Errorf("a release for which others wait is %q, want one deletion", got)
	}
	if got := theirs.requests(); !slices.Equal(got, []string{"/etcdserverpb.Watch/Watch", "/etcdserverpb.KV/Range"}) {
		t.Errorf("four claims that wait for one name, and the first is let in, by %q, want a watch and a look", got)
	}
	theirs.forget()
	next := mutex("busy")
	g, held, err := b.(driver.Requeuer).Requeue(t.Context(), second, next)
	if err != nil || !held || g.Held {
		t.Fatalf("requeue: %+v, held %v, %v", g, held, err)
	}
	if got := theirs.requests(); !slices.Equal(got, []string{txn}) {
		t.Errorf("a requeue is %q, want one transaction", got)
	}
}

// Who gives up behind another claim reads nothing of the line, however many stand there, also when
// that claim is another one by now than when it came. Who holds by then, and has not heard of it,
// is told that it held.
func TestGivingUpReadsNoLine(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	theirs, ours := session(t, opened(t, client(t, server.Addr()), nil)), session(t, opened(t, w.client, nil))
	const txn = "/etcdserverpb.KV/Txn"
	giveUp := func(was bool, line ...driver.Claim) {
		t.Helper()
		for _, c := range line {
			if held, err := ours.Release(t.Context(), c); err != nil || held != was {
				t.Errorf("release of %q: was held %v, %v; want %v", c.Name, held, err, was)
			}
		}
	}
	begins := func() { w.forget(); w.keys.Store(0) }
	costs := func(what string, requests int) {
		t.Helper()
		if n, keys := len(w.requests()), w.keys.Load(); n != requests || w.count(txn) != n || keys != 0 {
			t.Errorf("%s by %q, which read %d keys; want %d transactions that read nothing", what, w.requests(), keys, requests)
		}
	}

	first := mutex("busy")
	hold(t, theirs, first)
	var line []driver.Claim
	for range 40 {
		line = append(line, mutex("busy"))
		queue(t, ours, line[len(line)-1])
	}
	begins()
	giveUp(false, line[5:]...)
	costs("35 of 40 that wait give up", 35)
	told := waiting(t, w, ours, line[0])
	release(t, theirs, first)
	if g := <-told; !g.Held {
		t.Fatalf("who waits is told %+v", g)
	}
	begins()
	giveUp(false, line[4])
	costs("one gives up behind another one than when it came", 1)

	// Nobody hears of this name.
	first, second, third := mutex("unheard"), mutex("unheard"), mutex("unheard")
	hold(t, theirs, first)
	queue(t, ours, second)
	queue(t, ours, third)
	release(t, theirs, first)
	giveUp(false, third)
	giveUp(true, second)

	// What one claim alone keeps out, and what stands behind one that it could share with.
	writer := driver.Claim{Name: "shared", ID: driver.NewID(), Kind: driver.Write, Weight: driver.All, Limit: driver.All, Queue: true}
	reader := func() driver.Claim {
		return driver.Claim{Name: "shared", ID: driver.NewID(), Kind: driver.Read, Weight: 1, Limit: driver.All, Queue: true}
	}
	reads, behind := reader(), reader()
	hold(t, theirs, reads)
	queue(t, ours, writer)
	queue(t, ours, behind)
	giveUp(false, behind)
	begins()
	giveUp(false, writer)
	costs("a writer gives up behind a reader", 1)
	behind = reader()
	hold(t, ours, behind)
	giveUp(true, behind)
}

// Who comes when many wait hears of the one before it alone.
func TestLongLine(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	a, b := session(t, opened(t, client(t, server.Addr()), nil)), session(t, opened(t, w.client, nil))
	var line []driver.Claim
	for range 40 {
		line = append(line, mutex("busy"))
		acquire(t, a, line[len(line)-1])
	}
	last := mutex("busy")
	queue(t, b, last)
	w.forget()
	told := begin(t, b, last)
	eventually(t, "it hears", func() bool { return w.count("/etcdserverpb.Watch/Watch") > 0 })
	for i, c := range line {
		if len(told) > 0 || w.news.Load() > 0 {
			t.Fatalf("when %d of 40 have left: %d told, %d events", i, len(told), w.news.Load())
		}
		if _, err := a.Release(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if g := <-told; !g.Held || w.news.Load() != 1 {
		t.Errorf("when all have left: %+v, %d events", g, w.news.Load())
	}
	want := []string{"/etcdserverpb.KV/Range", "/etcdserverpb.Watch/Watch", "/etcdserverpb.KV/Txn"}
	got := slices.Compact(w.requests()) // the watch ends, too, before the transaction or after it
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(got) > len(want)+1 || w.count(want[0]) > 1 || w.count(want[2]) > 1 {
		t.Errorf("it has asked %q, want %q", got, want)
	}
}

// A leader is campaigned for, observed and succeeded.
func TestElection(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	var clients [2]*interlock.Client
	for i := range clients {
		c, err := interlock.New(opened(t, client(t, server.Addr()), nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		clients[i] = c
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	leads, resign, done := make(chan uint64, 2), make(chan struct{}), make(chan error, 2)
	lead := func(c *interlock.Client) {
		done <- c.Election("boss").Lead(ctx, func(ctx context.Context) error {
			leads <- interlock.Fence(ctx, "boss")
			<-resign
			return nil
		})
	}
	go lead(clients[0])
	first := <-leads
	go lead(clients[1])
	var seen []uint64
	resigned := false
	for leader, err := range clients[1].Election("boss").Observe(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if leader.Fence != 0 && !slices.Contains(seen, leader.Fence) {
			seen = append(seen, leader.Fence)
		}
		if len(seen) == 1 && !resigned {
			resigned = true
			resign <- struct{}{}
		}
		if len(seen) == 2 {
			break
		}
	}
	second := <-leads
	close(resign)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	if !slices.Equal(seen, []uint64{first, second}) || second <= first {
		t.Errorf("seen leading %d, want %d and then %d", seen, first, second)
	}
}

// A key that was put at an older revision is an older claim: tokens are revisions times the stride.
func TestTokensAreRevisions(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	d := opened(t, c, &etcdlock.Options{Namespace: "ns/"})
	s := session(t, d)
	one := mutex("a")
	g := hold(t, s, one)
	r, err := c.Get(t.Context(), "ns/a/", clientv3.WithPrefix())
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("%d keys, %v", len(r.Kvs), err)
	}
	if kv := r.Kvs[0]; g.Fence != uint64(kv.CreateRevision)*driver.Stride || d.(driver.Keyer).Key("a") != "ns/a/" {
		t.Errorf("token %d of revision %d, key %s", g.Fence, kv.CreateRevision, kv.Key)
	}
	release(t, s, one)
	if again := hold(t, s, mutex("a")); again.Fence < g.Fence+driver.Stride {
		t.Errorf("token %d after %d", again.Fence, g.Fence)
	}
}

// Whoever looks at a line is told when its leases end, to a second, and not since when: the store
// keeps no times.
func TestEndIsShown(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	d := opened(t, client(t, server.Addr()), nil)
	const ttl = 10 * time.Minute
	before := time.Now()
	s := sessionOf(t, d, ttl)
	hold(t, s, mutex("a"))
	queue(t, s, mutex("a"))
	l, err := d.(driver.Inspector).Line(t.Context(), "a")
	if err != nil || len(l.Claims) != 2 {
		t.Fatalf("line %+v, %v", l, err)
	}
	for _, h := range l.Claims {
		if h.Until.Before(before.Add(ttl-time.Minute)) || h.Until.After(time.Now().Add(ttl+time.Second)) || !h.Since.IsZero() {
			t.Errorf("stands there from %v to %v, want an end in %v", h.Since, h.Until, ttl)
		}
	}
}

// Names that begin alike are two locks, also where one goes on with a slash.
func TestNamesBelowNames(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	s := session(t, opened(t, client(t, server.Addr()), nil))
	for i := range 40 { // more than are read of the front of a line
		hold(t, s, mutex("a/"+string(rune('a'+i%26))+strings.Repeat("x", i/26)))
	}
	try := mutex("a")
	try.Queue = false
	hold(t, s, try)
	queue(t, s, mutex("a"))
	hold(t, s, mutex("a/"))
}

// Locks are found among whatever else the store has, and by the beginning of their names.
func TestLinesAmongOtherKeys(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	d := opened(t, c, nil)
	s := session(t, d)
	for i := range 30 {
		var puts []clientv3.Op
		for k := range 100 {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("data/%02d/%02d", i, k), "value"))
		}
		if _, err := c.Txn(t.Context()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"data/07", "data/29", "zoo", "zoo/a", "z"} {
		hold(t, s, permit(name+"-lock"))
	}
	queue := permit("zoo-lock")
	hold(t, s, queue)
	for prefix, want := range map[string]string{
		"":        "data/07-lock 1, data/29-lock 1, z-lock 1, zoo-lock 2, zoo/a-lock 1",
		"zoo":     "zoo-lock 2, zoo/a-lock 1",
		"zoo/":    "zoo/a-lock 1",
		"nothing": "",
	} {
		lines, err := d.(driver.Inspector).Lines(t.Context(), prefix)
		var got []string
		for _, l := range lines {
			got = append(got, fmt.Sprint(l.Name, " ", len(l.Claims)))
		}
		if err != nil || strings.Join(got, ", ") != want {
			t.Errorf("under %q: %q, %v, want %q", prefix, got, err, want)
		}
	}
}

// What cannot be kept is refused, with what would be right, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	s := session(t, opened(t, c, nil))
	put := func(key, value string) {
		t.Helper()
		if _, err := c.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	put("config/colour", "red")
	lease, err := c.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	newer := "newer/" + hex(lease.ID)
	if _, err := c.Put(t.Context(), newer, `il2{}`, clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	hold(t, s, permit("permits"))
	hold(t, s, mutex("locked"))
	before := keys(t, c)
	heavy := mutex("heavy")
	heavy.Weight, heavy.Limit = 3, 2
	for _, try := range []struct {
		c    driver.Claim
		says string
	}{
		{mutex(""), "name of 0 bytes: want 1 to 4096"},
		{mutex(strings.Repeat("n", 4097)), "name of 4097 bytes: want 1 to 4096"},
		{mutex("interlock:sessions"), "want another name"},
		{mutex("interlock:sessions/a"), "want another name"},
		{heavy, "want 1 ≤ weight ≤ limit"},
		{driver.Claim{Name: "a", Kind: driver.Mutex, Weight: 1, Limit: 1}, "want one as driver.NewID makes them"},
		{mutex("config"), `the key "config/colour" is under it and is no lock's`},
		{mutex("newer"), "newer version of Interlock"},
		{mutex("permits"), "in use as a permit, so it cannot be a mutex"},
		{permit("locked"), "in use as a mutex, so it cannot be a permit"},
	} {
		for _, queue := range []bool{true, false} {
			try.c.Queue = queue
			g, err := s.Acquire(t.Context(), try.c)
			if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), try.says) {
				t.Errorf("%.20q, queue %v: %+v, %v; want it refused with %q", try.c.Name, queue, g, err, try.says)
			}
		}
	}
	if after := keys(t, c); !slices.Equal(before, after) {
		t.Errorf("left behind: %q, before %q", after, before)
	}
	if _, err := opened(t, c, nil).Open(t.Context(), driver.Spec{TTL: time.Minute}); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("a session without an ID: %v", err)
	}
}
