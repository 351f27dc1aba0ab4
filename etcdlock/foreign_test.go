package etcdlock_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// foreign is a lock of another program. take waits for it, until ctx ends; give releases it.
type foreign struct {
	take func(ctx context.Context, name string) (give func() error, err error)
}

// foreigners are etcd's own: its package, by mutex and by election, and its command.
func foreigners(t *testing.T, addr string) map[string]foreign {
	t.Helper()
	session := func() *concurrency.Session {
		s, err := concurrency.NewSession(client(t, addr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	return map[string]foreign{
		"concurrency.Mutex": {func(ctx context.Context, name string) (func() error, error) {
			m := concurrency.NewMutex(session(), name)
			return func() error { return m.Unlock(context.Background()) }, m.Lock(ctx)
		}},
		"concurrency.Election": {func(ctx context.Context, name string) (func() error, error) {
			e := concurrency.NewElection(session(), name)
			return func() error { return e.Resign(context.Background()) }, e.Campaign(ctx, `{"id":"node 1"}`)
		}},
		"lock service": {func(ctx context.Context, name string) (func() error, error) {
			return v3lock(ctx, addr, name)
		}},
		"etcdctl lock": {func(ctx context.Context, name string) (func() error, error) {
			return etcdctl(ctx, addr, name)
		}},
	}
}

// v3lock locks by the server's own service, over HTTP.
func v3lock(ctx context.Context, addr, name string) (give func() error, err error) {
	ask := func(ctx context.Context, path string, question, answer any) error {
		body, err := json.Marshal(question)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v3/"+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer got.Body.Close()
		if got.StatusCode != http.StatusOK {
			return errors.New(path + ": " + got.Status)
		}
		return json.NewDecoder(got.Body).Decode(answer)
	}
	var lease struct{ ID string }
	if err := ask(ctx, "lease/grant", map[string]int{"TTL": 60}, &lease); err != nil {
		return nil, err
	}
	var lock struct {
		Key []byte `json:"key"`
	}
	if err := ask(ctx, "lock/lock", map[string]any{"name": []byte(name), "lease": lease.ID}, &lock); err != nil {
		return nil, err
	}
	return func() error {
		return ask(context.Background(), "lock/unlock", map[string]any{"key": lock.Key}, &struct{}{})
	}, nil
}

// etcdctl locks by the command, which says its key when it holds, and releases when it is
// interrupted.
func etcdctl(ctx context.Context, addr, name string) (give func() error, err error) {
	c := exec.Command("etcdctl", "--endpoints", addr, "lock", name)
	c.Env = append(os.Environ(), "ETCDCTL_API=3")
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	end := func() error {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // it ends by the signal
		return nil
	}
	holds := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, name+"/") {
			err = errors.New("etcdctl says " + line)
		}
		holds <- err
		_, _ = io.Copy(io.Discard, out)
	}()
	select {
	case err := <-holds:
		return end, err
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), end())
	}
}

// While another program holds, ours wait, are refused a try, show it as another program's, and get
// in when it has released.
func TestForeignHolderKeepsOursOut(t *testing.T) {
	t.Parallel()
	foreignKeepOursOut(t, servertest.Etcd(t))
}

func foreignKeepOursOut(t *testing.T, server *servertest.Server) {
	t.Helper()
	c := client(t, server.Addr())
	d := opened(t, c, nil)
	s := session(t, d)
	for who, theirs := range foreigners(t, server.Addr()) {
		t.Run(who, func(t *testing.T) {
			for _, kind := range []driver.Kind{driver.Mutex, driver.Write, driver.Read} {
				name := who + "/" + kind.String()
				give, err := theirs.take(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				ours := mutex(name)
				ours.Kind = kind
				if kind == driver.Read {
					ours.Weight = 1
				}
				try := ours
				try.ID, try.Queue = driver.NewID(), false
				if g := acquire(t, s, try); g.Held || g.Holder == nil || !g.Holder.Foreign {
					t.Fatalf("a try beside another program: %+v", g)
				}
				queue(t, s, ours)
				told := begin(t, s, ours)
				l, err := d.(driver.Inspector).Line(t.Context(), name)
				if err != nil || len(l.Claims) != 2 || !l.Claims[0].Foreign || !l.Claims[0].Held || l.Claims[1].Held {
					t.Fatalf("line %+v, %v", l, err)
				}
				theirToken := l.Claims[0].Fence
				if err := d.(driver.Inspector).Break(t.Context(), name, l.Claims[0].PublicID, theirToken, false); !errors.Is(err, driver.ErrOnlyNow) {
					t.Errorf("a mark for who reads none: %v", err)
				}
				if len(told) > 0 {
					t.Fatalf("two hold %q: %+v", name, <-told)
				}
				if err := give(); err != nil {
					t.Fatal(err)
				}
				g := <-told
				if !g.Held {
					g = await(t, s, ours)
				}
				if kind != driver.Read && g.Fence <= theirToken {
					t.Errorf("token %d after %d", g.Fence, theirToken)
				}
				release(t, s, ours)
			}
		})
	}
}

// While ours holds, be it a mutex or a reader, another program is kept out and gets in when it has
// released.
func TestOursKeepForeignOut(t *testing.T) {
	t.Parallel()
	oursKeepForeignOut(t, servertest.Etcd(t))
}

func oursKeepForeignOut(t *testing.T, server *servertest.Server) {
	t.Helper()
	c := client(t, server.Addr())
	s := session(t, opened(t, c, nil))
	for who, theirs := range foreigners(t, server.Addr()) {
		t.Run(who, func(t *testing.T) {
			for _, ours := range []driver.Claim{mutex(who + "/mutex"), permit(who + "/permit")} {
				hold(t, s, ours)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				in := make(chan error, 1)
				var give func() error
				go func() {
					var err error
					give, err = theirs.take(ctx, ours.Name)
					in <- err
				}()
				eventually(t, "they stand in line", func() bool {
					r, err := c.Get(t.Context(), ours.Name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
					return err == nil && r.Count == 2
				})
				select {
				case err := <-in:
					t.Fatalf("two hold %q: %v", ours.Name, err)
				case <-time.After(100 * time.Millisecond): // they would be in by now; if not, this shows less
				}
				release(t, s, ours)
				if err := <-in; err != nil {
					t.Fatal(err)
				}
				if err := give(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// An election is seen from both sides, whoever leads, and by watch: between two leaders nothing is
// asked.
func TestElectionsAreSeenBothWays(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	w := newWay(t, server.Addr())
	locks, err := interlock.New(opened(t, w.client, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	session, err := concurrency.NewSession(client(t, server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	theirs := concurrency.NewElection(session, "boss")
	if err := theirs.Campaign(t.Context(), "node 1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := make(chan interlock.Leader)
	go func() {
		defer close(seen)
		for l, err := range locks.Election("boss").Observe(ctx) {
			if err != nil {
				return
			}
			seen <- l
		}
	}()
	if l := <-seen; l.Note != "node 1" || l.Fence != uint64(theirs.Rev())*driver.Stride {
		t.Errorf("seen leading: %+v, want node 1 by revision %d", l, theirs.Rev())
	}
	w.forget()
	s := sessionOf(t, opened(t, client(t, server.Addr()), nil), time.Minute)
	ours := mutex("boss")
	queue(t, s, ours)
	if err := theirs.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := await(t, s, ours)
	for l := range seen {
		if l.Fence == g.Fence && l.Owner.Name == "test" {
			break
		}
	}
	// A look for each of the two changes, and one at who has come; a renewal may be among them.
	if asked := w.requests(); len(asked) > 6 || slices.Contains(asked, "/etcdserverpb.Watch/Watch") {
		t.Errorf("two changes have cost the observer %q", asked)
	}
	r, err := theirs.Leader(t.Context())
	if err != nil || uint64(r.Kvs[0].CreateRevision)*driver.Stride != g.Fence {
		t.Errorf("they see %+v leading, %v, want revision %d", r, err, g.Fence/driver.Stride)
	}
	cancel()
	for range seen {
	}
}
