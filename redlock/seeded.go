package redlock

import (
	"strings"
)

// seeded returns the script with a bug for the test that must find it, if that is on.
func seeded(script string, on bool, text, instead string) string {
	if !on {
		return script
	}
	if !strings.Contains(script, text) {
		panic("redlock: a bug cannot be seeded: the script does not have " + text)
	}
	return strings.Replace(script, text, instead, 1)
}
