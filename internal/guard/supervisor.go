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

// init is the guard process. In any other process it returns at once; in a guard it never does:
// main is not reached.
//
// It is no function that main calls, since a guard is started for every command and needs none of
// what its program links. Packages are initialized in the order of their import paths as far as
// their imports allow (Go spec, "Program initialization"), and this one imports little of the
// standard library: no net, which comes late, and so before the clients of stores, whose
// initialization takes milliseconds.
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

// supervisor is the guard process's state. Everything happens in one goroutine:
//
//	idle ── run ──> running ── Term, stop ──> stopping ── Kill ──> killing ── nothing left ──> over
//	                   └── nothing left ──> over
//
// The end of the socketpair leads from every state to killing.
type supervisor struct {
	link  *link
	tree  tree
	died  chan os.Signal // SIGCHLD
	ready chan struct{}  // closed when all signals are caught
	alarm *alarm
	users []int // the descriptors above 2 that the user's command inherits

	pid      int // the child, 0 before it was started
	group    int // the child's process group where that is its own, else 0
	ended    bool
	halted   bool          // the child is stopped, and interlock knows
	queued   []unix.Signal // signals that came before the child
	deadline Deadline
	refused  bool // the lock was lost before there was a command
	stopping bool
	killRest bool
	state    State
	gone     bool // nothing is left of the tree
	received int  // messages
}

// restDelay is how long the rest of a tree may take to end after the child before it is reported.
const restDelay = 50 * time.Millisecond

func serve(fd int) error {
	if unix.SetNonblock(fd, true) != nil {
		return fmt.Errorf("guard: this process is started by interlock itself, not by hand")
	}
	link, err := newLink(fd)
	if err != nil {
		return err
	}
	s := &supervisor{
		link:  link,
		tree:  tree{root: os.Getpid()},
		died:  make(chan os.Signal, 1),
		ready: make(chan struct{}),
		users: inherited(),
	}
	go func() { // while interlock waits for the lock; before there is a child it is done
		defer close(s.ready)
		catch()
		signal.Notify(s.died, unix.SIGCHLD)
	}()
	if err := becomeSubreaper(); err != nil {
		return fmt.Errorf("guard: become a subreaper: %w", err)
	}
	if s.alarm, err = newAlarm(); err != nil {
		return err
	}
	s.loop()
	return nil
}

// catch keeps signals from ending the guard: it gets messages. They are caught and dropped,
// never ignored, because the child would inherit that they are ignored, while what is caught goes
// back to its default at exec. What was ignored at the start is left so, for nohup.
func catch() {
	drain := make(chan os.Signal, 1)
	for _, sig := range dropped {
		if ignored(sig) {
			continue
		}
		signal.Notify(drain, sig) // Notify never blocks; what does not fit is dropped
	}
}

func (s *supervisor) loop() {
	messages := make(chan message)
	go func() {
		defer close(messages)
		for {
			m, err := s.link.receive()
			if err != nil { // interlock is dead, or what it says cannot be trusted
				signalCopies(unix.SIGKILL) // one that Ctrl-Z has stopped would keep fork from returning
				return
			}
			messages <- m
		}
	}()
	var restDue <-chan time.Time
	for !s.gone {
		select {
		case m, ok := <-messages:
			switch {
			case ok:
				s.handle(m)
				s.collectGarbage()
			case s.pid == 0:
				return
			default:
				messages = nil
				s.stopping, s.state.Stopped = true, true
				s.kill()
			}
		case <-s.alarm.C:
			s.enforce()
		case <-s.died:
			s.gone = s.reap() && s.pid != 0
			switch {
			case s.gone || !s.ended:
			case s.killRest:
				s.kill()
			case restDue == nil:
				restDue = time.NewTimer(restDelay).C
			}
		case <-restDue:
			if pids := s.tree.pids(); len(pids) > 0 {
				s.report(message{Op: opRemaining, Pids: pids})
			}
		}
	}
	s.report(message{Op: opOver, State: s.state})
}

func (s *supervisor) report(m message) { _ = s.link.send(m) }

func (s *supervisor) handle(m message) {
	switch m.Op {
	case opRun:
		s.run(m)
	case opDeadline:
		if !s.stopping {
			s.deadline = m.Deadline
			s.enforce()
		}
	case opStop:
		if s.deadline.Kill == 0 || m.Deadline.Kill < s.deadline.Kill {
			s.deadline = m.Deadline
		}
		s.deadline.Term = Now()
		s.refused = s.pid == 0 // the command may still be on its way, with a deadline from before the loss
		s.enforce()
	case opSignal:
		s.forward(unix.Signal(m.Signal))
	}
}

// collectGarbage runs the collector now and then, by hand once the command is executed: before,
// nothing may be collected (see forkGuard), so the guard runs without a collector but for a limit
// of its memory. A renewal leaves a kilobyte.
func (s *supervisor) collectGarbage() {
	if s.received++; s.pid != 0 && s.received%1024 == 0 {
		runtime.GC()
	}
}

// enforce does what the deadline asks for by now, and sets the alarm for what it asks for next.
// Before the child exists there is nothing to do: run looks at the deadline itself.
func (s *supervisor) enforce() {
	d := s.deadline
	if s.pid == 0 || d == (Deadline{}) {
		return
	}
	now := Now()
	if now >= d.Term && !s.stopping {
		s.stopping, s.state.Stopped = true, true
		if now < d.Kill {
			s.terminate()
		}
	}
	if now >= d.Kill {
		s.kill()
		return
	}
	next := d.Kill
	if !s.stopping {
		next = d.Term
	}
	s.alarm.set(next)
}

// terminate asks the tree to end, the child first. What is stopped could not hear it, hence
// SIGCONT. The tree is read before a signal is sent: what a handler of SIGTERM starts to clean up
// with is not asked to end, and no process is missed because its parent ends and it goes over to
// the guard while the tree is read.
func (s *supervisor) terminate() {
	all := s.tree.processes()
	if !s.ended {
		_ = unix.Kill(s.pid, unix.SIGTERM)
		_ = unix.Kill(s.pid, unix.SIGCONT)
	}
	for _, p := range all {
		if p.pid == s.pid {
			continue
		}
		_ = s.tree.send(p, unix.SIGTERM)
		_ = s.tree.send(p, unix.SIGCONT)
	}
}

// kill ends the tree and returns when nothing is left of it.
func (s *supervisor) kill() {
	if s.pid == 0 {
		return
	}
	if !s.ended {
		_ = unix.Kill(s.pid, unix.SIGKILL) // before the tree is read: that takes as long as a good deal of work
	}
	if s.group != 0 && !s.ended {
		_ = unix.Kill(-s.group, unix.SIGKILL) // reaches what has left the tree, where there is no subreaper
	}
	s.tree.kill(s.reap, s.died, func(pids []int) {
		s.report(message{Op: opUnkillable, Pids: pids})
	})
	s.gone = true
}

// forward gives a signal to the child, or keeps it until there is one. When the child has ended,
// what is left of its tree gets it.
func (s *supervisor) forward(sig unix.Signal) {
	switch {
	case s.pid == 0:
		s.queued = append(s.queued, sig)
	case s.ended:
		s.tree.signal(sig)
	case s.group != 0 && !slices.Contains(toOne, sig):
		_ = unix.Kill(-s.group, sig)
	default:
		_ = unix.Kill(s.pid, sig)
	}
}

// continueParent continues interlock, which has stopped along with the command, when that goes on
// or has ended: somebody may have continued or ended the command alone. What our own signals end is
// found out by fg.
func (s *supervisor) continueParent() {
	if s.halted && !s.stopping {
		_ = unix.Kill(os.Getppid(), unix.SIGCONT)
	}
	s.halted = false
}

// reap collects every child that has ended and reports whether none is left. Adopted orphans are
// children too, so none left means that the whole tree is gone. A stop of
// the command is reported to interlock, which stops along with it at a terminal; if somebody then
// continues the command alone, reap continues interlock.
func (s *supervisor) reap() (empty bool) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		case pid != s.pid:
		case ws.Stopped():
			if s.group == 0 && !s.stopping {
				s.halted = true
				s.report(message{Op: opHalted})
			}
		case ws.Continued():
			s.continueParent()
		default:
			s.ended = true
			s.continueParent()
			stopped := s.state.Stopped
			s.state = exitStatus(syscall.WaitStatus(ws))
			s.state.Stopped = stopped
		}
	}
}
