package zklock

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
)

// maxName is the longest name in bytes.
const maxName = 1024

// nodeOf returns the name of the node of a lock. No lock lies below another one: what a node's name
// cannot have, and / and %, is written as %XX, byte by byte. Most names stay as they are, as other
// libraries write them.
func nodeOf(name string, root bool) string {
	switch {
	case name == "." || name == "..":
		return strings.ReplaceAll(name, ".", "%2E")
	case root && name == "zookeeper": // the servers' own node
		return "%7Aookeeper"
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if plain(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(name[i : i+size])
		} else {
			for _, c := range []byte(name[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		i += size
	}
	return b.String()
}

// plain reports whether a server takes a character as it is. It knows no more than 16 bits of one,
// and not all of these.
func plain(r rune) bool {
	return r != '/' && r != '%' && (r >= 0x20 && r < 0x7f || r >= 0xa0 && r < 0xd800)
}

// nameOf returns the name of the lock that has a node, if nodeOf makes that of one.
func nameOf(node string, root bool) (string, bool) {
	name, err := url.PathUnescape(node)
	return name, err == nil && node != "" && nodeOf(name, root) == node
}

// checkName returns an error for a name that no lock has.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("zklock: name of %d bytes: want 1 to %d: %w", len(name), maxName, driver.ErrName)
	}
	return nil
}
