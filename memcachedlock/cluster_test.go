package memcachedlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// A name stays with its server, also while that is gone, and the names of the others go on.
func TestM04_OneOfTwoServersIsGone(t *testing.T) {
	t.Parallel()
	one, two := servertest.Memcached(t), servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, fmt.Sprintf("memcached://%s,%s?timeout=1s", one.Addr(), two.Addr())), 3*time.Second)
	b := storetest.Entered(t, storetest.Opened(t, fmt.Sprintf("memcached://%s,%s", two.Addr(), one.Addr())), time.Minute) // in another order
	on := map[bool]string{}                                                                                               // a name of each server
	for i := 0; len(on) < 2; i++ {
		name := fmt.Sprintf("name-%d", i)
		c := mutex(name)
		a.Asks(c, true)
		b.Asks(mutex(name), false)
		on[beside(t, one.Addr()).says(memcache.Get("interlock:"+name)).Status == memcache.Value] = name
		a.Leaves(c, true)
	}
	lost, kept := mutex(on[true]), mutex(on[false])
	a.Asks(lost, true)
	a.Asks(kept, true)
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	if g, err := b.Acquire(t.Context(), mutex(on[true])); err == nil {
		t.Errorf("a name whose server is gone: %+v", g)
	}
	again := mutex("again")
	again.Name = on[false]
	b.Asks(again, false)
	// Renewed late in its time, the session goes on without what nobody can renew.
	storetest.Until(t, "the claim of the server that is gone is given up", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r, err := a.Renew(ctx)
		if err == nil && (len(r.Lost) != 1 || r.Lost[0].ID != lost.ID) {
			t.Fatalf("lost %q", r.Lost)
		}
		return err == nil
	})
	a.Asks(kept, true)
	a.Leaves(kept, true)
	if err := two.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Renew(t.Context()); err == nil {
		t.Error("a session is renewed by nobody")
	}
}
