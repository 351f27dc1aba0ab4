//go:build mutant

// Package mutant is a copy of the switch.
package mutant

import "os"

// On reports whether the bug is turned on.
func On(id string) bool { return id == os.Getenv("INTERLOCK_MUTANT") }
