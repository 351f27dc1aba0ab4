package cli

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// The environment of the command. INTERLOCK_HELD lists the leases of the runs around it, the
// innermost last, one to a line: the lock's name, the token, and the store, with tabs between them.
// None of them has control characters.
const (
	envName  = "INTERLOCK_NAME"
	envFence = "INTERLOCK_FENCE"
	envHeld  = "INTERLOCK_HELD"
)

// aroundLease is a lease of a run around this one, as INTERLOCK_HELD tells it.
type aroundLease struct {
	name  string
	fence uint64 // 0 of readers and permits, and where the store draws none
	store string // see bareStore
}

func (a aroundLease) String() string {
	return a.name + "\t" + strconv.FormatUint(a.fence, 10) + "\t" + a.store
}

// leasesAround reads INTERLOCK_HELD. Lines in another form are ignored.
func leasesAround() (leases []aroundLease) {
	for line := range strings.SplitSeq(os.Getenv(envHeld), "\n") {
		if field := strings.Split(line, "\t"); len(field) == 3 {
			if fence, err := strconv.ParseUint(field[1], 10, 64); err == nil {
				leases = append(leases, aroundLease{field[0], fence, field[2]})
			}
		}
	}
	return leases
}

// environ returns the command's environment: this process's, with the leases of the runs around it
// and its own.
func environ(own aroundLease) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		key, _, _ := strings.Cut(e, "=")
		return key == envName || key == envFence || key == envHeld
	})
	var held []string
	for _, a := range append(leasesAround(), own) {
		held = append(held, a.String())
	}
	return append(env,
		envName+"="+own.name,
		envFence+"="+strconv.FormatUint(own.fence, 10),
		envHeld+"="+strings.Join(held, "\n"))
}

// bareStore returns a store's redacted URL without its user, for INTERLOCK_HELD: every process that
// the command starts can read it.
func bareStore(shown string) string {
	scheme, rest, ok := strings.Cut(shown, "://")
	if !ok {
		return shown
	}
	end := strings.IndexAny(rest+"/", "/?#")
	return scheme + "://" + rest[strings.LastIndex(rest[:end], "@")+1:]
}
