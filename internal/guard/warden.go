//go:build linux || darwin

package guard

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processName is argv[0] of the guard process; argv[1] is the number of its end of the socketpair.
const processName = "interlock-guard"

// init is the guard process. In any other process it returns at once; in a guard it never does: main is not reached.
//
// It is no function that main calls, since a guard is started for every command and needs none of what its program links. Packages are
// initialized in the order of their import paths as far as their imports allow (Go spec, "Program initialization"), and this one imports
// little of the standard library: no net, which comes late, and so before the clients of stores, whose initialization takes milliseconds.
func init() {
	if len(os.Args) != 2 || os.Args[0] != processName {
		return
	}
	// PDEATHSIG follows the thread that forked. This one ends with the process and not before.
	runtime.LockOSThread()
	fd, err := strconv.Atoi(os.Args[1])
	if err == nil {
		err = serve(fd)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interlock:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// warden is the guard process's state. Everything happens in one goroutine:
//
//	idle ── run ──> running ── Term, stop ──> stopping ── Kill ──> killing ── nothing left ──> over
//	                   └── nothing left ──> over
//
// The end of the socketpair leads from every state to killing.
type warden struct {
	link  *link
	tree  tree
	died  chan os.Signal // SIGCHLD
	ready chan struct{}  // closed when all signals are caught
	alarm *alarm
	users []int // the descriptors above 2 that the user's command inherits

	pid      int // the child, 0 before it was started
	group    int // the child's process group where that is its own, else 0
	ended    bool
	halted   bool          // the child is stopped, and interlock was told
	queued   []unix.Signal // signals that came before the child
	deadline Deadline
	refused  bool // the lock was lost before there was a command
	stopping bool
	killRest bool
	state    State
	gone     bool // nothing is left of the tree
	heard    int  // messages
}

// settling is how long the rest of a tree may take to end after the child before anybody is told of it.
const settling = 50 * time.Millisecond

func serve(fd int) error {
	if unix.SetNonblock(fd, true) != nil {
		return fmt.Errorf("guard: this process is started by interlock itself, not by hand")
	}
	link, err := newLink(fd)
	if err != nil {
		return err
	}
	w := &warden{
		link:  link,
		tree:  tree{root: os.Getpid()},
		died:  make(chan os.Signal, 1),
		ready: make(chan struct{}),
		users: inherited(),
	}
	go func() { // while interlock waits for the lock; before there is a child it is done
		defer close(w.ready)
		catch()
		signal.Notify(w.died, unix.SIGCHLD)
	}()
	if err := becomeSubreaper(); err != nil {
		return fmt.Errorf("guard: become a subreaper: %w", err)
	}
	if w.alarm, err = newAlarm(); err != nil {
		return err
	}
	w.loop()
	return nil
}

// catch keeps signals from ending the guard: it is told by messages. They are caught and dropped, never ignored,
// because the child would inherit that they are ignored, while what is caught goes back to its default at exec. What was
// ignored at the start is left so, for nohup.
func catch() {
	drain := make(chan os.Signal, 1)
	for _, sig := range dropped {
		if ignored(sig) {
			continue
		}
		signal.Notify(drain, sig) // Notify never blocks; what does not fit is dropped
	}
}

func (w *warden) loop() {
	messages := make(chan message)
	go func() {
		defer close(messages)
		for {
			m, err := w.link.receive()
			if err != nil { // interlock is dead, or what it says cannot be trusted
				signalCopies(unix.SIGKILL) // one that Ctrl-Z has stopped would keep fork from returning
				return
			}
			messages <- m
		}
	}()
	var told <-chan time.Time
	for !w.gone {
		select {
		case m, ok := <-messages:
			switch {
			case ok:
				w.handle(m)
				w.collect()
			case w.pid == 0:
				return
			default:
				messages = nil
				w.stopping, w.state.Stopped = true, true
				w.kill()
			}
		case <-w.alarm.C:
			w.look()
		case <-w.died:
			w.gone = w.reap() && w.pid != 0
			switch {
			case w.gone || !w.ended:
			case w.killRest:
				w.kill()
			case told == nil:
				told = time.NewTimer(settling).C
			}
		case <-told:
			if pids := w.tree.pids(); len(pids) > 0 {
				w.report(message{Op: opRemaining, Pids: pids})
			}
		}
	}
	w.report(message{Op: opOver, State: w.state})
}

func (w *warden) report(m message) { _ = w.link.send(m) }

func (w *warden) handle(m message) {
	switch m.Op {
	case opRun:
		w.run(m)
	case opDeadline:
		if !w.stopping {
			w.deadline = m.Deadline
			w.look()
		}
	case opStop:
		if w.deadline.Kill == 0 || m.Deadline.Kill < w.deadline.Kill {
			w.deadline = m.Deadline
		}
		w.deadline.Term = Now()
		w.refused = w.pid == 0 // the command may still be on its way, with a deadline from before the loss
		w.look()
	case opSignal:
		w.pass(unix.Signal(m.Signal))
	}
}

// collect collects garbage now and then, by hand once the command is executed: before, nothing may be collected (see forkGuard), so the guard
// runs without a collector but for a limit of its memory. A renewal leaves a kilobyte.
func (w *warden) collect() {
	if w.heard++; w.pid != 0 && w.heard%1024 == 0 {
		runtime.GC()
	}
}

// look does what the deadline asks for by now, and sets the alarm for what it asks for next. Before the child exists
// there is nothing to do: run looks at the deadline itself.
func (w *warden) look() {
	d := w.deadline
	if w.pid == 0 || d == (Deadline{}) {
		return
	}
	now := Now()
	if now >= d.Term && !w.stopping {
		w.stopping, w.state.Stopped = true, true
		if now < d.Kill {
			w.terminate()
		}
	}
	if now >= d.Kill {
		w.kill()
		return
	}
	next := d.Kill
	if !w.stopping {
		next = d.Term
	}
	w.alarm.set(next)
}

// terminate asks the tree to end, the child first. What is stopped could not hear it, hence SIGCONT. The tree is read
// before anybody is told: what a handler of SIGTERM starts to clean up with is not asked to end, and nobody is missed
// because his parent ends and he goes over to the guard while the tree is read.
func (w *warden) terminate() {
	all := w.tree.processes()
	if !w.ended {
		_ = unix.Kill(w.pid, unix.SIGTERM)
		_ = unix.Kill(w.pid, unix.SIGCONT)
	}
	for _, p := range all {
		if p.pid == w.pid {
			continue
		}
		_ = w.tree.send(p, unix.SIGTERM)
		_ = w.tree.send(p, unix.SIGCONT)
	}
}

// kill ends the tree and returns when nothing is left of it.
func (w *warden) kill() {
	if w.pid == 0 {
		return
	}
	if !w.ended {
		_ = unix.Kill(w.pid, unix.SIGKILL) // before the tree is read: that takes as long as a good deal of work
	}
	if w.group != 0 && !w.ended {
		_ = unix.Kill(-w.group, unix.SIGKILL) // reaches what has left the tree, where there is no subreaper
	}
	w.tree.kill(w.reap, w.died, func(pids []int) {
		w.report(message{Op: opUnkillable, Pids: pids})
	})
	w.gone = true
}

// pass gives a signal to the child, or keeps it until there is one. When the child has ended, what is left of its tree
// gets it.
func (w *warden) pass(sig unix.Signal) {
	switch {
	case w.pid == 0:
		w.queued = append(w.queued, sig)
	case w.ended:
		w.tree.signal(sig)
	case w.group != 0 && !slices.Contains(toOne, sig):
		_ = unix.Kill(-w.group, sig)
	default:
		_ = unix.Kill(w.pid, sig)
	}
}

// goOn continues interlock where the command goes on that it has stopped along with, or has ended: whoever did that may have done it to the
// command alone. What ends by our own signals is found out by fg.
func (w *warden) goOn() {
	if w.halted && !w.stopping {
		_ = unix.Kill(os.Getppid(), unix.SIGCONT)
	}
	w.halted = false
}

// reap collects every child that has ended and reports whether none is left. Adopted orphans are children too, so none
// left means that the whole tree is gone. That the command was stopped is told to interlock, which stops along with it at a terminal; and
// interlock is continued where somebody continues the command alone.
func (w *warden) reap() (empty bool) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		case pid != w.pid:
		case ws.Stopped():
			if w.group == 0 && !w.stopping {
				w.halted = true
				w.report(message{Op: opHalted})
			}
		case ws.Continued():
			w.goOn()
		default:
			w.ended = true
			w.goOn()
			stopped := w.state.Stopped
			w.state = exitStatus(syscall.WaitStatus(ws))
			w.state.Stopped = stopped
		}
	}
}
