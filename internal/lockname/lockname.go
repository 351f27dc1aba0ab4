// Package lockname has the rule of what can be a lock's name, for whoever locks without a client.
package lockname

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Max is the longest name in bytes.
const Max = 1024

// Check returns what is wrong with a name: any UTF-8 of 1 to Max bytes without control characters will do.
func Check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("empty name: want 1 to %d bytes", Max)
	case len(name) > Max:
		return fmt.Errorf("name of %d bytes: want at most %d", len(name), Max)
	case !utf8.ValidString(name):
		return fmt.Errorf("name %q is not UTF-8", name)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Errorf("name %q has the control character %U: want none", name, r)
		}
	}
	return nil
}
