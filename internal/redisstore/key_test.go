package redisstore

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestANameIsFoundInItsKeyWhateverItHolds(t *testing.T) {
	const mark = "}:fence:"
	for _, name := range []string{"a", "", "}:fence:", "x{}:fence:}:fence:y", "a}b", "{}:fence:}"} {
		for _, tag := range []string{"t", mark, name} {
			keyOf := func(name string) string { return SideKeys + tag + mark + name }
			if got := NameOf(keyOf(name), mark, keyOf); got != name {
				t.Errorf("the key of %q with the tag %q is taken for that of %q", name, tag, got)
			}
		}
	}
	if got := NameOf("il:{t}:line:a", mark, func(name string) string { return SideKeys + "t" + mark + name }); got != "" {
		t.Errorf("a key of another kind is taken for that of %q", got)
	}
}

func TestNamesThatLookLikeSideKeysAreRefused(t *testing.T) {
	if err := CheckName("redislock", "il:{x"); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := CheckName("redislock", "il:x"); err != nil {
		t.Error(err)
	}
}
