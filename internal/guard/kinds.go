package guard

import "syscall"

// Stops reports whether sig asks a process to stop, as Ctrl-Z does: the answer is [StopSelf].
func Stops(sig syscall.Signal) bool { return kindOf(sig) == kindStop }

// Ends reports whether sig asks a process to end.
func Ends(sig syscall.Signal) bool { return kindOf(sig) == kindEnd }

const (
	kindOther = iota
	kindStop
	kindEnd
)
