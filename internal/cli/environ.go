package cli

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// What the command gets told. INTERLOCK_HELD lists the names held by the runs around it, one to a line: a name has no
// control characters.
const (
	envName  = "INTERLOCK_NAME"
	envFence = "INTERLOCK_FENCE"
	envHeld  = "INTERLOCK_HELD"
)

// heldAround returns the names that the runs around this one hold.
func heldAround() []string {
	return strings.FieldsFunc(os.Getenv(envHeld), func(r rune) bool { return r == '\n' })
}

// environ is the command's environment: this process's, with nothing left of what a run around it said.
func environ(name string, fence uint64) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		key, _, _ := strings.Cut(e, "=")
		return key == envName || key == envFence || key == envHeld
	})
	return append(env,
		envName+"="+name,
		envFence+"="+strconv.FormatUint(fence, 10),
		envHeld+"="+strings.Join(append(heldAround(), name), "\n"))
}
