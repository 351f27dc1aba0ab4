package memcachedlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// No name reaches the protocol: each is another key, legal and no longer than keys may be, or is
// refused.
func TestM06_Names(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	keys := map[string]string{}
	for _, name := range []string{
		"a", "A", "a b", "a_b", "a\r\nflush_all\r\n", "a\x00", "ä", "a~b", "~", " ", strings.Repeat("x", 240), strings.Repeat("x", 241), strings.Repeat("x", 1024),
		strings.Repeat("x", 1023) + "y", strings.Repeat("ü", 512), "interlock:a",
	} {
		key := a.Driver.(driver.Keyer).Key(name)
		if err := memcache.CheckKey(key); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
		if other, taken := keys[key]; taken {
			t.Errorf("%.20q and %.20q have the key %q", name, other, key)
		}
		keys[key] = name
		c := mutex(name)
		a.Asks(c, true)
		if h := a.Line(name); h.PublicID != driver.PublicID(c.ID) {
			t.Errorf("%.20q: %+v", name, h)
		}
	}
	lines, err := a.Driver.(driver.Inspector).Lines(t.Context(), "")
	if err != nil || len(lines) != len(keys) {
		t.Errorf("%d lines of %d names, %v", len(lines), len(keys), err)
	}
	for _, name := range []string{"", "\xff", strings.Repeat("x", 5000)} {
		if _, err := a.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	add := storetest.Entered(t, storetest.Opened(t, s.URL()+"?layout=add&prefix=mine:"), time.Minute)
	for _, name := range []string{"a b", "a\r\n", strings.Repeat("x", 246)} {
		if _, err := add.Acquire(t.Context(), mutex(name)); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%.20q as a key: %v", name, err)
		}
	}
	add.Asks(mutex("a"), true)
	if got := beside(t, s.Addr()).says(memcache.Get("mine:a")); got.Status != memcache.Value {
		t.Errorf("at mine:a stands %+v", got)
	}
}
