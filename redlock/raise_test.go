package redlock_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/redlock"
)

// What a master says to a raise counts from when it was asked, not from when its answer came: its key ends a TTL after the former, at the
// earliest.
func TestRaiseCountsFromItsSending(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+patient), time.Minute)
	c := mutex("raise", false)
	if g, err := acquire(t.Context(), s, c); err != nil || !g.Held {
		t.Fatalf("three masters: %+v, %v", g, err)
	}
	everywhere(t, set, c.Name)
	since := time.Now()
	from, err := redlock.Raise(t.Context(), s, c.ID, since)
	if err != nil {
		t.Fatal(err)
	}
	for i, from := range from {
		if !from.Equal(since) {
			t.Errorf("master %d, asked to raise the token, counts from %v after that, want from then", i+1, from.Sub(since))
		}
	}
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Errorf("release: %v, %v", held, err)
	}
}
