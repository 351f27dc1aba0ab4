//go:build mutant

package mutant

import "os"

var turnedOn = os.Getenv("INTERLOCK_MUTANT")

// On reports whether the seeded bug id is the one named by INTERLOCK_MUTANT.
func On(id string) bool { return id != "" && id == turnedOn }
