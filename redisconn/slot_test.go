package redisconn_test

import (
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// keySlot is the slot that a server says.
func keySlot(t *testing.T, s *servertest.Server, key string) int {
	t.Helper()
	v, err := s.Do("CLUSTER", "KEYSLOT", key)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

// FuzzSlot compares with a server: the slot of every key, and of a side key with the key's tag.
func FuzzSlot(f *testing.F) {
	for _, key := range []string{
		"", "a", "123456789", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}",
		"a}b", "{}", "{}x", "x{a}y{b}", "}{", "{", "}", "{a", "a}", "}{a}", "{a}{}", "ä{ö}ü", "\x00{\xff}", "coupons/42",
	} {
		f.Add(key)
	}
	s := servertest.Redis(f, "--cluster-enabled", "yes")
	f.Fuzz(func(t *testing.T, key string) {
		want := keySlot(t, s, key)
		if got := redisconn.Slot(key); got != want {
			t.Errorf("Slot(%q) = %d; the server says %d", key, got, want)
		}
		if key == "" {
			return // no lock has this name
		}
		if side := "il:{" + redisconn.Tag(key) + "}:line:" + key; keySlot(t, s, side) != want {
			t.Errorf("the side key %q lies in slot %d, its key in %d", side, keySlot(t, s, side), want)
		}
	})
}

func TestTag(t *testing.T) {
	for key, want := range map[string]string{
		"plain": "plain", "a{b": "a{b", "x{a}y{b}": "a", "foo{{bar}}zap": "{bar", "{x}": "x",
	} {
		if got := redisconn.Tag(key); got != want {
			t.Errorf("Tag(%q) = %q; want %q", key, got, want)
		}
	}
	for _, key := range []string{"a}b", "{}", "{}x", "}{"} {
		if n, err := strconv.Atoi(redisconn.Tag(key)); err != nil || n < 0 {
			t.Errorf("Tag(%q) = %q; want a number: nothing in braces can repeat the name", key, redisconn.Tag(key))
		}
		if redisconn.Tag(key) != redisconn.Tag(key) { //nolint:staticcheck // the second comes from the memory of the first
			t.Errorf("Tag(%q) changes", key)
		}
	}
}
