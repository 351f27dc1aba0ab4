//go:build linux || darwin

package guard

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passed on, or in the way, where interlock catches them.
var caught = []unix.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT,
}

// dropped are those that the guard catches, so as not to end by them: it is told by messages.
var dropped = append([]unix.Signal{unix.SIGALRM, unix.SIGVTALRM, unix.SIGWINCH}, caught...)

// forking is held while this process forks.
var forking sync.Mutex

// Signals are the signals that this process gets from outside.
type Signals struct {
	C <-chan os.Signal
	c chan os.Signal
}

// Catch catches HUP, INT, QUIT, TERM, USR1, USR2, TSTP, TTIN, TTOU and CONT, without those that were ignored when the
// process started: these stay ignored, here and in the command. Hand each one to [Guard.Forward], which knows whether
// the child has it already.
func Catch() *Signals {
	c := make(chan os.Signal, 32)
	for _, sig := range caught {
		if !ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	return &Signals{C: c, c: c}
}

// Stop ends the catching.
func (s *Signals) Stop() { signal.Stop(s.c) }

// StopSelf stops this process as an uncaught SIGTSTP would have, and returns when it has been continued, or at once
// where the kernel does not let it stop because nobody could continue it (an orphaned process group). Call it when
// TSTP, TTIN or TTOU was caught. It holds outside, if that is not nil, while it is stopped: a lock that is also held in
// every stretch of code in which a stopped process would hold up others.
func StopSelf(outside sync.Locker) {
	if outside != nil {
		outside.Lock()
		defer outside.Unlock()
	}
	defer betweenForks()()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stopThread()
}

// DieOf ends this process by sig, so that whoever waits for it sees that. A bash loop goes on after a command that
// exits with 130, and ends after one that was killed by SIGINT. Where sig does not end it, the process exits with 128
// and its number.
func DieOf(sig syscall.Signal) {
	signal.Reset(sig)
	if !ignored(sig) {
		_ = unix.Kill(os.Getpid(), sig)
		<-time.NewTimer(time.Second).C // another thread may be the one that gets it, in a moment
	}
	os.Exit(128 + int(sig))
}

func kindOf(sig syscall.Signal) int {
	switch sig {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return kindStop
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM:
		return kindEnd
	}
	return kindOther
}
