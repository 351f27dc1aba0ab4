package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// SideKeys is the prefix of the keys that the stores keep beside a name. No name may begin with it.
const SideKeys = "il:{"

var errSideKey = errors.New("names that begin with " + SideKeys + " are the store's own keys")

// CheckName returns an error for a name that stores over Redis cannot keep. It begins with the
// store's name.
func CheckName(store, name string) error {
	if strings.HasPrefix(name, SideKeys) {
		return fmt.Errorf("%s: name %q: %w: %w", store, name, driver.ErrName, errSideKey)
	}
	return nil
}

// Pattern returns a pattern of names for the text of a user's rights. There white space ends a
// word, and the rest would be a right of its own, so it is replaced by a pattern for any letter.
func Pattern(names string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\v\f", r) {
			return '?'
		}
		return r
	}, names)
}

// NameOf returns the name whose side key is key, or "". keyOf makes the key of a name, with mark
// before the name. A name and its tag may contain mark, so each place where it occurs is tried.
func NameOf(key, mark string, keyOf func(name string) string) string {
	for rest := key; ; {
		_, name, ok := strings.Cut(rest, mark)
		if !ok || keyOf(name) == key {
			return name
		}
		rest = name
	}
}
