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

// nodeOf makes the name of a node of a lock's name, so that no lock lies below another one: what a node's name cannot have, and / and %, is
// written as %XX, byte by byte. Most names stay as they are, as other libraries write them.
func nodeOf(name string, root bool) string {
	switch {
	case name == "." || name == "..":
		return strings.ReplaceAll(name, ".", "%2E")
	case root && name == "zookeeper": // where the servers keep what is theirs
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

// plain reports whether a server takes a character as it is. It knows no more than 16 bits of one, and not all of these.
func plain(r rune) bool {
	return r != '/' && r != '%' && (r >= 0x20 && r < 0x7f || r >= 0xa0 && r < 0xd800)
}

// nameOf reads what nodeOf wrote. A node of another name belongs to no lock.
func nameOf(node string, root bool) (string, bool) {
	name, err := url.PathUnescape(node)
	return name, err == nil && node != "" && nodeOf(name, root) == node
}

// dir is the node of a lock.
func (d *Driver) dir(name string) string { return d.base + "/" + nodeOf(name, d.base == "") }

// Key implements driver.Keyer.
func (d *Driver) Key(name string) string { return d.dir(name) }

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("zklock: name of %d bytes: want 1 to %d: %w", len(name), maxName, driver.ErrName)
	}
	return nil
}
