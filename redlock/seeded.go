package redlock

import (
	"strings"

	"github.com/interlock-go/interlock/internal/mutant"
)

// seeded returns the script with a bug for the test that must find it, if that is on.
func seeded(script, id, text, instead string) string {
	if !mutant.On(id) {
		return script
	}
	if !strings.Contains(script, text) {
		panic("redlock: bug " + id + " cannot be seeded: the script does not have " + text)
	}
	return strings.Replace(script, text, instead, 1)
}
