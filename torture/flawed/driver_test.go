package flawed

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

func TestOpenRefuses(t *testing.T) {
	for _, u := range []string{"flawed+none://127.0.0.1:1", "redis://127.0.0.1:1", "flawed+honest://", "flawed+client-clocks://127.0.0.1:1?skew=far"} {
		if _, err := Open(t.Context(), u); err == nil || !strings.Contains(err.Error(), "flawed: ") {
			t.Errorf("%s: got %v, want an error of this package", u, err)
		}
	}
	for _, s := range driver.Schemes() {
		if strings.HasPrefix(s, Prefix) {
			t.Errorf("%s is registered: everybody could lock with it", s)
		}
	}
}

// Where nothing goes wrong all of them are locks: one holds, the next does when it has left, and
// only what is held is released. What differs is what a server sees of them.
func TestAllExcludeWhileNothingGoesWrong(t *testing.T) {
	var servers []*servertest.Server
	var hosts []string
	for range 5 {
		s := servertest.Redis(t)
		servers, hosts = append(servers, s), append(hosts, s.Addr())
	}
	const ttl = 5 * time.Second
	for _, k := range kinds {
		if k.Name == pooler || k.Name == face {
			continue // two hold whatever happens, or there is no Redis
		}
		t.Run(k.Name, func(t *testing.T) {
			where, of := hosts[0], servers[:1]
			switch k.Name {
			case lapsed, lease:
				where, of = servertest.Etcd(t).Addr(), nil
			case anew, sought:
				where, of = servertest.ZooKeeper(t).Addr(), nil
			}
			if k.over != nil {
				where, of = strings.Join(hosts, ",")+"?max_ttl=5s", servers
			}
			d, err := Open(t.Context(), Prefix+k.Name+"://"+where)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close(context.Background()) })
			if q, ok := d.(*store).lock.(quorum); ok {
				q.longest = ttl // a slow machine is nothing that goes wrong
				d.(*store).lock = q
				for _, s := range servers { // a majority counts, and the others are about to
					if !q.voteless {
						keys(t, s, VoteKey, "1")
					}
				}
			}
			var sessions [2]driver.Session
			var claims [2]driver.Claim
			for i := range sessions {
				if sessions[i], err = d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl}); err != nil {
					t.Fatal(err)
				}
				claims[i] = driver.Claim{Name: k.Name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
				if g, err := sessions[i].Acquire(t.Context(), claims[i]); err != nil || g.Held != (i == 0) {
					t.Fatalf("claim %d: held %v, %v", i, g.Held, err)
				}
				// where half of the masters suffice, the next claim may win those that have not
				// been asked yet
				for _, s := range of {
					keys(t, s, k.Name, "1")
				}
			}
			if r, err := sessions[0].Renew(t.Context()); err != nil || len(r.Lost) > 0 || r.Valid < ttl-ttl/10 {
				t.Fatalf("renew: %+v, %v", r, err)
			}
			if held, err := sessions[1].Release(t.Context(), claims[1]); err != nil || held {
				t.Fatalf("release of what waits: held %v, %v", held, err)
			}
			next := claims[1]
			next.ID = driver.NewID()
			if g, err := sessions[1].Acquire(t.Context(), next); err != nil || g.Held {
				t.Fatalf("a waiter that left took the lock with it: held %v, %v", g.Held, err)
			}
			if held, err := sessions[0].Release(t.Context(), claims[0]); err != nil || !held {
				t.Fatalf("release: held %v, %v", held, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if g, err := sessions[1].Wait(ctx, next); err != nil || !g.Held {
				t.Fatalf("the next one: held %v, %v", g.Held, err)
			}
			if err := sessions[1].Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if of != nil {
				keys(t, servers[0], k.Name, "0")
			}
		})
	}
}

// keys waits until the server has so many keys of a name.
func keys(t *testing.T, server *servertest.Server, name, want string) {
	t.Helper()
	for tick, end := time.NewTicker(10*time.Millisecond), time.Now().Add(30*time.Second); ; <-tick.C {
		n, err := server.Do("EXISTS", name)
		if err == nil && n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s has %s keys of %s, %v: want %s", server.Addr(), n, name, err, want)
		}
	}
}
