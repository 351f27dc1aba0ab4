package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// SideKeys begins the keys that the stores keep beside a name, so no name may begin with it.
const SideKeys = "il:{"

var errSideKey = errors.New("names that begin with " + SideKeys + " are the store's own keys")

// CheckName refuses a name that stores over Redis cannot keep. The error begins with the store's name.
func CheckName(store, name string) error {
	if strings.HasPrefix(name, SideKeys) {
		return fmt.Errorf("%s: name %q: %w: %w", store, name, driver.ErrName, errSideKey)
	}
	return nil
}

// Pattern is a pattern of names as the text of a user's rights has it. There white space ends a word, and what follows it would be a right of
// its own; so any letter may stand in its place.
func Pattern(names string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\v\f", r) {
			return '?'
		}
		return r
	}, names)
}

// NameOf is the name whose side key is key, or "". keyOf makes the key of a name, with mark before the name. A name and
// its tag may hold the same letters as mark, so every place where they stand is tried.
func NameOf(key, mark string, keyOf func(name string) string) string {
	for rest := key; ; {
		_, name, ok := strings.Cut(rest, mark)
		if !ok || keyOf(name) == key {
			return name
		}
		rest = name
	}
}
