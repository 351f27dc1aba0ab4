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

// passed on, or in the way, where interlock catches them: those that stop a process, and the
// others. Left out are those that the kernel or the Go runtime sends to interlock for what it does
// itself (URG, PROF, CHLD, PIPE, XCPU, a crash), and the real-time signals, whose values would not
// go with them.
var (
	stops  = []unix.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}
	others = append([]unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT,
		unix.SIGWINCH, unix.SIGALRM, unix.SIGVTALRM, unix.SIGIO,
	}, ofThisSystem...)
)

// toOne are those that mean a certain program: others of its group would end or stop by them.
var toOne = append([]unix.Signal{
	unix.SIGTTIN, unix.SIGTTOU, unix.SIGWINCH, unix.SIGALRM, unix.SIGVTALRM, unix.SIGIO,
}, ofThisSystem...)

// dropped are those that the guard catches, so as not to end or stop by them: it gets
// messages. What else has no handler of ours, as USR1 or ALRM, package os/signal drops by itself,
// and each that is caught costs two switches between threads.
var dropped = append([]unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM}, stops...)

// Signals are the signals that this process gets from outside.
type Signals struct {
	C   <-chan os.Signal
	All <-chan struct{} // closed when all are caught
	c   chan os.Signal
	all chan struct{}
}

// NewSignals returns signals of which none is caught yet: see [Signals.CatchStops] and
// [Signals.CatchAll]. Hand each one to [Guard.Forward], which knows whether the child has it
// already.
//
// To catch one the runtime switches twice between threads, so that all of them take as long as a
// process takes to start.
func NewSignals() *Signals {
	c, all := make(chan os.Signal, 32), make(chan struct{})
	return &Signals{C: c, All: all, c: c, all: all}
}

// CatchStops catches TSTP, TTIN and TTOU, without those that were ignored when the process started:
// these stay ignored, here and in the command. It is called once, before a guard is forked: they
// could stop the guard alone before it executes its program.
func (s *Signals) CatchStops() { notify(s.c, stops) }

// CatchAll catches HUP, INT, QUIT, TERM, USR1, USR2, CONT, WINCH, ALRM, VTALRM, IO and PWR as well.
// It is called once, after CatchStops and before anything is held.
func (s *Signals) CatchAll() {
	notify(s.c, others)
	close(s.all)
}

// notify has signals sent to c, without those that are ignored.
func notify(c chan<- os.Signal, signals []unix.Signal) {
	for _, sig := range signals {
		if !ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

// Stop ends the catching.
func (s *Signals) Stop() {
	<-s.All
	signal.Stop(s.c)
}

// StopSelf stops this process as an uncaught SIGTSTP would have, and returns when it has been
// continued, or at once where the kernel does not let it stop because nobody could continue it (an
// orphaned process group). Call it when TSTP, TTIN or TTOU was caught. It holds outside, if that is
// not nil, while it is stopped: a lock that is also held in every stretch of code in which a
// stopped process would hold up others.
func StopSelf(outside sync.Locker) {
	if outside != nil {
		outside.Lock()
		defer outside.Unlock()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	betweenForks(stopThread)
}

// DieOf ends this process by sig, so that its parent sees that. A bash loop goes on after
// a command that exits with 130, and ends after one that was killed by SIGINT. Where sig does not
// end it, the process exits with 128 and its number.
func DieOf(sig syscall.Signal) {
	signal.Reset(sig)
	if !ignored(sig) {
		_ = unix.Kill(os.Getpid(), sig)
		<-time.NewTimer(time.Second).C // another thread may be the one that gets it, in a moment
	}
	os.Exit(128 + int(sig))
}

// Stops reports whether sig asks a process to stop, as Ctrl-Z does: the answer is [StopSelf]. TTIN
// and TTOU do so at a terminal only; elsewhere somebody means the program, as gunicorn's new
// worker.
func Stops(sig syscall.Signal) bool {
	return sig == unix.SIGTSTP || (sig == unix.SIGTTIN || sig == unix.SIGTTOU) && hasTerminal()
}

// Ends reports whether sig asks a process to end.
func Ends(sig syscall.Signal) bool {
	return sig == unix.SIGHUP || sig == unix.SIGINT || sig == unix.SIGQUIT || sig == unix.SIGTERM
}
