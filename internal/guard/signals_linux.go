package guard

import (
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

var ofThisSystem = []unix.Signal{unix.SIGPWR}

// action is the kernel's struct sigaction. The layout differs between machines, but its size does
// not exceed this, and all zeros are SIG_DFL on each.
type action [8]uint64

const signalSetSize = 8 // bytes of the kernel's sigset_t

func swapAction(sig unix.Signal, next, previous *action) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(previous)), signalSetSize, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ignored reports whether sig is ignored. signal.Ignored does not know it of TSTP, TTIN and TTOU,
// which the Go runtime leaves as they were.
func ignored(sig unix.Signal) bool {
	const handlerIgnore = 1 // SIG_IGN, the first word on every machine that Go supports but MIPS
	var a action
	return signal.Ignored(sig) || swapAction(sig, nil, &a) == nil && uint64(uintptr(a[0])) == handlerIgnore
}

// stopThread sends SIGTSTP to the calling thread with the default action, which stops the whole
// process before the call returns. signal.Reset would not do: it leaves Go's handler in place,
// which drops the signal.
func stopThread() {
	var standard, handler action
	if swapAction(unix.SIGTSTP, &standard, &handler) != nil {
		return
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGTSTP)
	_ = swapAction(unix.SIGTSTP, &handler, nil)
}
