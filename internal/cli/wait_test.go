package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// Who has been granted the lock and has not heard of it yet, as one that Ctrl-Z has stopped
// meanwhile, is not told that it waits for itself.
func TestNobodyWaitsForItself(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	var said bytes.Buffer
	w := &waiter{t: terminal{err: &said}, tap: &tap{Driver: store}, wanted: wanted{name: "job", store: "mem:"}}
	acquire := func(d driver.Driver, owner string) (release func()) {
		t.Helper()
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute, Owner: driver.Owner{Name: owner, Start: time.Now()}})
		if err != nil {
			t.Fatal(err)
		}
		c := driver.Claim{ID: driver.NewID(), Name: w.name, Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
		if g, err := s.Acquire(t.Context(), c); err != nil || !g.Held {
			t.Fatalf("held %v, %v", g.Held, err)
		}
		return func() {
			if _, err := s.Release(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}

	release := acquire(w.tap, "mine")
	if w.sayWhoHolds(t.Context()) || said.Len() > 0 {
		t.Errorf("it says %q of its own lock, want nothing yet", said.String())
	}
	release()
	acquire(store, "theirs")
	if !w.sayWhoHolds(t.Context()) || !strings.Contains(said.String(), "theirs") {
		t.Errorf("it says %q, want who holds", said.String())
	}
}
