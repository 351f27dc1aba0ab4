package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

// briefly makes a call, and gives it up when its request is held.
func briefly(t *testing.T, w *way, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	given := make(chan error, 1)
	go func() { given <- call(ctx) }()
	eventually(t, "the request is held", w.met)
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Fatalf("a request without an answer: %v", err)
	}
}

// patient has an answer awaited for as long as a test does.
var patient = &etcdlock.Options{Timeout: patience}

// A session whose opening was given up leaves nothing, whenever its requests come.
func TestLateOpen(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	d := opened(t, w.client, patient)
	for n := range 2 { // the lease, and the session's key
		deliver := w.hold(n)
		briefly(t, w, func(ctx context.Context) error {
			_, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour})
			return err
		})
		if !deliver() {
			t.Fatal("nothing was held")
		}
		eventually(t, "the lease is revoked", func() bool {
			r, err := w.client.Leases(t.Context())
			return err == nil && w.count("/etcdserverpb.Lease/LeaseRevoke") > n && len(r.Leases) == 0
		})
	}
}

// An Acquire that was given up and comes after its Release takes nothing, whatever its session does
// meanwhile.
func TestLateAcquire(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	s := session(t, opened(t, w.client, patient))
	for _, mode := range []string{"the name is free", "the next one holds", "it was a requeue"} {
		requeued := mode == "it was a requeue"
		old, c := mutex("late"), mutex("late")
		if requeued {
			hold(t, s, old)
		}
		deliver := w.hold(0)
		briefly(t, w, func(ctx context.Context) (err error) {
			if requeued {
				_, _, err = s.(driver.Requeuer).Requeue(ctx, old, c)
			} else {
				_, err = s.Acquire(ctx, c)
			}
			return err
		})
		if requeued {
			if _, err := s.Release(t.Context(), old); err != nil {
				t.Fatal(err)
			}
		}
		if held, err := s.Release(t.Context(), c); held || err != nil {
			t.Fatalf("release: %v, %v", held, err)
		}
		next := mutex("late")
		if mode != "the name is free" {
			hold(t, s, next) // in the place of the one that was given up
		}
		if !deliver() {
			t.Fatal("nothing was held")
		}
		eventually(t, "what was late has had its answer", func() bool { return w.late.Load() > 0 })
		w.late.Store(0)
		if mode != "the name is free" {
			if g, err := s.Acquire(t.Context(), next); err != nil || !g.Held {
				t.Fatalf("%s: a request that was late has taken it from who holds: %v", mode, err)
			}
			release(t, s, next)
		}
		if all := keys(t, w.client); len(all) != 1 { // the session's
			t.Fatalf("%s: a request that was late has left %q", mode, all)
		}
	}
}

// Many Acquires are given up and released at the same time: each Release finds the version of the
// session's key that the others leave, whichever of their answers is read first.
func TestManyLateAcquires(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	s := session(t, opened(t, w.client, patient))
	heal := w.wire.Stall(wire.Both)
	var line []driver.Claim
	var all sync.WaitGroup
	for i := range 50 {
		c := mutex(fmt.Sprint("late", i))
		line = append(line, c)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if g, err := s.Acquire(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: a request without an answer: %+v, %v", c.Name, g, err)
			}
		})
	}
	all.Wait()
	heal()
	for _, c := range line {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := s.Release(ctx, c); err != nil { // whether it was held depends on which request came first
				t.Errorf("release of %s: %v", c.Name, err)
			}
		})
	}
	all.Wait()
	if left := keys(t, w.client); len(left) != 1 { // the session's
		t.Errorf("left behind: %q", left)
	}
}

// A Release that was given up and comes later takes nothing from a claim that has the same key
// meanwhile.
func TestLateRelease(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	s := session(t, opened(t, w.client, patient))
	c, next := mutex("late"), mutex("late")
	hold(t, s, c)
	deliver := w.hold(0)
	briefly(t, w, func(ctx context.Context) error { _, err := s.Release(ctx, c); return err })
	if _, err := s.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	g := hold(t, s, next)
	if !deliver() {
		t.Fatal("nothing was held")
	}
	eventually(t, "what was late has had its answer", func() bool { return w.late.Load() > 0 })
	if again, err := s.Acquire(t.Context(), next); err != nil || again != g {
		t.Errorf("a Release that was late has changed %+v to %+v, %v", g, again, err)
	}
	release(t, s, next)
}

// A key of the session that nobody knows of is deleted by its next renewal; a claim whose key
// somebody has deleted is lost.
func TestRenewalComparesKeys(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	s := session(t, opened(t, c, nil))
	keeps, loses := mutex("keeps"), mutex("loses")
	hold(t, s, keeps)
	hold(t, s, loses)
	r, err := c.Get(t.Context(), "loses/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	lease := clientv3.LeaseID(r.Kvs[0].Lease)
	for _, key := range []string{"keeps/" + hex(lease) + "-1", "surplus/" + hex(lease)} {
		if _, err := c.Put(t.Context(), key, "il1{}", clientv3.WithLease(lease)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Put(t.Context(), "data/"+hex(lease+1), "", clientv3.WithLease(lease)); err != nil { // the program's own
		t.Fatal(err)
	}
	if _, err := c.Delete(t.Context(), string(r.Kvs[0].Key)); err != nil {
		t.Fatal(err)
	}
	renewal, err := s.Renew(t.Context())
	if err != nil || !slices.Equal(renewal.Lost, []driver.Loss{{ID: loses.ID, Err: driver.ErrGone}}) {
		t.Errorf("lost %v, %v, want %q", renewal.Lost, err, loses.ID)
	}
	want := []string{"data/" + hex(lease+1), "interlock:sessions/" + hex(lease), "keeps/" + hex(lease)}
	if all := keys(t, c); !slices.Equal(all, want) {
		t.Errorf("keys %q, want %q", all, want)
	}
	if _, err := s.Acquire(t.Context(), loses); !errors.Is(err, driver.ErrGone) {
		t.Errorf("what is lost is asked for: %v", err)
	}
}

// A claim is broken by who has its key under another name, behind another namespace.
func TestBrokenFromAnotherNamespace(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	s := session(t, opened(t, c, nil))
	other := opened(t, c, &etcdlock.Options{Namespace: "ns/"}).(driver.Inspector)
	held, waits := mutex("ns/a"), mutex("ns/a")
	token := hold(t, s, held).Fence
	queue(t, s, waits)
	for id, token := range map[string]uint64{waits.ID: token + driver.Stride, held.ID: token} {
		if err := other.Break(t.Context(), "a", driver.PublicID(id), token, false); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Renew(t.Context()); err != nil || !slices.Contains(r.Lost, driver.Loss{ID: id, Err: driver.ErrBroken}) {
			t.Errorf("renew: %+v, %v, want %s lost", r, err, id)
		}
	}
	for _, c := range []driver.Claim{held, waits} {
		if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrBroken) {
			t.Errorf("asked again, a claim that was broken is answered %v", err)
		}
	}
}

// A store that gives longer leases than it is asked for is named, once: a lock outlives its process
// for that long.
func TestLongerLeases(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t, "--election-timeout=2000")
	said := make(chan string, 10)
	d := opened(t, client(t, server.Addr()), &etcdlock.Options{Logger: slog.New(slog.NewTextHandler(lines(said), nil))})
	for range 2 {
		s := sessionOf(t, d, 2*time.Second)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	select {
	case text := <-said:
		if !strings.Contains(text, "gives longer leases") || !strings.Contains(text, "given=3s") {
			t.Errorf("said %s", text)
		}
	case <-time.After(30 * time.Second):
		t.Error("said nothing of the longer leases")
	}
	select {
	case text := <-said:
		t.Errorf("said again: %s", text)
	default:
	}
}

// lines passes on what is written to it.
type lines chan<- string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

// A store whose quota is used up says so; what is held there is renewed, released, handed over and
// broken.
func TestQuota(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t, "--quota-backend-bytes=200000")
	c := client(t, server.Addr())
	d := opened(t, c, nil)
	s := session(t, d)
	first, second, taken := mutex("held"), mutex("held"), mutex("taken")
	hold(t, s, first)
	queue(t, s, second)
	token := hold(t, s, taken).Fence
	for {
		if _, err := c.Put(t.Context(), "big", string(make([]byte, 50_000))); err != nil {
			break
		}
	}
	if _, err := s.Acquire(t.Context(), mutex("new")); !errors.Is(err, driver.ErrUnable) || !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a lock where there is no room: %v", err)
	}
	if r, err := s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Errorf("renew: %+v, %v", r, err)
	}
	release(t, s, first)
	if g := await(t, s, second); g.Fence == 0 {
		t.Errorf("granted %+v", g)
	}
	release(t, s, second)
	id := driver.PublicID(taken.ID)
	if err := d.(driver.Inspector).Break(t.Context(), "taken", id, token, false); !errors.Is(err, driver.ErrUnable) {
		t.Errorf("a mark where there is no room: %v", err)
	}
	if err := d.(driver.Inspector).Break(t.Context(), "taken", id, token, true); err != nil {
		t.Errorf("break now: %v", err)
	}
	if r, err := s.Renew(t.Context()); err != nil || !slices.Equal(r.Lost, []driver.Loss{{ID: taken.ID, Err: driver.ErrGone}}) {
		t.Errorf("renew: %+v, %v, want %s lost", r, err, taken.ID)
	}
	r, err := c.Get(t.Context(), "big")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Defragment(t.Context(), server.Addr()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	hold(t, s, mutex("new"))
}

// History that is compacted while a watch was down costs a look at the line.
func TestCompactionUnderAWait(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	c := client(t, server.Addr())
	w := newWay(t, server.Addr())
	a, b := session(t, opened(t, c, nil)), session(t, opened(t, w.client, nil))
	first, second := mutex("a"), mutex("a")
	hold(t, a, first)
	queue(t, b, second)
	w.forget()
	told := waiting(t, w, b, second)
	w.wire.Refuse()
	w.wire.Cut()
	release(t, a, first)
	r, err := c.Put(t.Context(), "other", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), r.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if err := w.wire.Accept(); err != nil {
		t.Fatal(err)
	}
	if g := <-told; !g.Held {
		await(t, b, second)
	}
}

// guard has a server ask for names and passwords: app with the password secret may use what begins
// with locks/, and one the name a and the sessions.
func guard(t *testing.T, server *servertest.Server) {
	t.Helper()
	admin := client(t, server.Addr())
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(admin.UserAdd(t.Context(), "root", "r"))
	must(admin.RoleAdd(t.Context(), "root"))
	must(admin.UserGrantRole(t.Context(), "root", "root"))
	must(admin.UserAdd(t.Context(), "app", "secret"))
	must(admin.RoleAdd(t.Context(), "locks"))
	must(admin.RoleGrantPermission(t.Context(), "locks", "locks/", clientv3.GetPrefixRangeEnd("locks/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(admin.UserGrantRole(t.Context(), "app", "locks"))
	must(admin.UserAdd(t.Context(), "one", "secret"))
	must(admin.RoleAdd(t.Context(), "one"))
	for _, prefix := range []string{"a/", "interlock:sessions/"} {
		must(admin.RoleGrantPermission(t.Context(), "one", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite)))
	}
	must(admin.UserGrantRole(t.Context(), "one", "one"))
	must(admin.AuthEnable(t.Context()))
}

// A user of locks needs the rights to read and write under the namespace and no other, and a
// password that is right.
func TestRights(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	guard(t, server)
	open := func(user, namespace string) (driver.Driver, error) {
		return driver.OpenURL(t.Context(), "etcd://"+user+server.Addr()+"?timeout=1m&namespace="+namespace) // a login takes a busy server long
	}
	for _, try := range []struct{ user, namespace string }{{"app:wrong@", "locks/"}, {"app:secret@", "other/"}, {"", "locks/"}} {
		d, err := open(try.user, try.namespace)
		if !errors.Is(err, driver.ErrRefused) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q under %q: %v, %v, want it refused", try.user, try.namespace, d, err)
		}
	}
	for user, namespace := range map[string]string{"app:secret@": "locks/", "one:secret@": ""} {
		d, err := open(user, namespace)
		if err != nil {
			t.Fatalf("%s under %q: %v", user, namespace, err)
		}
		defer d.Close(t.Context())
		handOver(t, session(t, d), session(t, d), func() {})
	}
}

// A login that had no answer in time is no refusal, although the server says one when it is there
// at last: it is asked again.
func TestALoginWithoutAnswerIsNotRefused(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	guard(t, server)
	w := wire.New(t, server.Addr())
	heal := w.Stall(wire.Both)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for w.Count().Connections < 2 && t.Context().Err() == nil { // the second is of the look that tells why
			<-tick.C
		}
		heal()
	}()
	d, err := driver.OpenURL(t.Context(), "etcd://app:secret@"+w.Addr()+"?namespace=locks/&timeout=700ms")
	if err == nil {
		_ = d.Close(t.Context())
	}
	if !errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), w.Addr()) {
		t.Errorf("a login without an answer: %v, want that nothing was sent", err)
	}
}

// The server forgets the token of who holds and waits, as when it has expired or a password was
// changed: the client logs in again, also at a server that refuses a login with a token that it
// does not know.
func TestTokenIsForgotten(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	guard(t, server)
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Username: "root", Password: "r"})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	d, err := driver.OpenURL(t.Context(), "etcd://app:secret@"+server.Addr()+"?namespace=locks/&timeout=1m")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(context.Background())
	a, b := session(t, d), session(t, d)
	for range 2 {
		handOver(t, a, b, func() {
			if _, err := root.UserChangePassword(t.Context(), "app", "secret"); err != nil {
				t.Fatal(err)
			}
		})
	}
}
