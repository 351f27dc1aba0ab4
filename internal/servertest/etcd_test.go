package servertest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/interlock-go/interlock/internal/servertest"
)

// etcd is a client of these servers.
func etcd(t *testing.T, addrs ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// put writes a key and returns the store's revision then.
func put(t *testing.T, c *clientv3.Client, key string) int64 {
	t.Helper()
	for {
		// A write is not repeated by the client where its outcome is unknown, as while a leader is
		// elected.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		r, err := c.Put(ctx, key, "x")
		cancel()
		if err == nil {
			return r.Header.Revision
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// has reports how many of the keys under the prefix "kept/" the server has.
func has(t *testing.T, c *clientv3.Client) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := c.Get(ctx, "kept/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return r.Count
}

func TestEtcdKeepsItsDataOverStopAndKill(t *testing.T) {
	t.Parallel()
	s := servertest.Etcd(t)
	c := etcd(t, s.Addr())
	last := int64(0)
	for i, end := range []func() error{s.Stop, s.Kill} {
		last = put(t, c, "kept/"+string(rune('a'+i)))
		if err := s.LoseData(); err == nil {
			t.Error("the data of a server that runs is removed")
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := has(t, c); got != int64(i+1) {
			t.Errorf("after end %d the server has %d keys, want %d", i+1, got, i+1)
		}
	}
	if err := errors.Join(s.Stop(), s.LoseData(), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := has(t, c); got != 0 {
		t.Errorf("a server that has forgotten has %d keys", got)
	}
	if again := put(t, c, "kept/again"); again >= last {
		t.Errorf("a server that has forgotten goes on with revision %d behind %d", again, last)
	}
}

func TestEtcdIsPaused(t *testing.T) {
	t.Parallel()
	s := servertest.Etcd(t)
	c := etcd(t, s.Addr())
	put(t, c, "kept/a")
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 100 { // a thread of the server may go on for a moment
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err = c.Get(ctx, "kept/a")
		cancel()
		if err != nil {
			break
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server answers: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := has(t, c); got != 1 {
		t.Errorf("after Resume the server has %d keys", got)
	}
}

// Of three members any one may go: the others go on, and it comes back with its data and what it
// has missed.
func TestEtcdMembersOutliveOne(t *testing.T) {
	t.Parallel()
	m := servertest.EtcdMembers(t, 3)
	c := etcd(t, m.Addrs()...)
	for i, s := range m.Members {
		end := []func() error{s.Kill, s.Stop, s.Pause}[i]
		if err := end(); err != nil {
			t.Fatal(err)
		}
		put(t, c, "kept/"+string(rune('a'+i)))
		if i == 2 {
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
		} else if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := has(t, etcd(t, s.Addr())); got != int64(i+1) {
			t.Errorf("member %d has %d keys when it is back, want %d", i+1, got, i+1)
		}
	}
}

func TestEtcdTakesArgumentsAndCleansUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := servertest.StartEtcds(t.Context(), 3, servertest.Options{Dir: dir, Args: []string{"--max-txn-ops=1"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = etcd(t, m.Members[0].Addr()).Txn(ctx).Then(clientv3.OpGet("a"), clientv3.OpGet("b")).Commit()
	if err == nil || !strings.Contains(err.Error(), "too many operations") {
		t.Errorf("two operations where one is allowed: %v", err)
	}
	if want := "etcd://" + strings.Join(m.Addrs(), ","); m.URL() != want || m.Members[0].URL() != "etcd://"+m.Addrs()[0] {
		t.Errorf("URLs %s and %s", m.URL(), m.Members[0].URL())
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "member-2", "data")); err != nil {
		t.Errorf("a folder that the caller named: %v", err)
	}
	s, err := servertest.StartEtcd(t.Context(), servertest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	for _, o := range []servertest.Options{{TLS: true}, {Port: 1}} {
		if m, err := servertest.StartEtcds(t.Context(), 3, o); err == nil {
			t.Errorf("%+v: %v is started", o, m)
		}
	}
	if m, err := servertest.StartEtcds(t.Context(), 0, servertest.Options{}); err == nil {
		t.Errorf("%v has no members", m)
	}
}
