//go:build !mutant

// Package mutant is a copy of the switch.
package mutant

// On reports whether the bug is turned on.
func On(string) bool { return false }
